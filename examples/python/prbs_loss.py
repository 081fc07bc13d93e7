# SPDX-License-Identifier: BSD-3-Clause
"""Checks every bit of a PRBS run, and plots what was lost over time.

  python3 prbs_loss.py                                            # a loopback inside of this process
  python3 prbs_loss.py --file loss.png --seconds 60 --port net_af_packet0,iface=eth0

It needs matplotlib. The library checks the frames, on the GPU where there is one; here only counts are read.
"""
import argparse

import gdrcap


def watch(session, interval):
    """(seconds, frames received, lost, damaged, Gb/s) until the run's end."""
    rows = []
    while True:
        over = session.wait(interval)
        summary = session.summary()
        frames = summary["frames"]
        rows.append((summary["seconds"] or 0.0, frames["received"], frames["lost"] or 0, frames["damaged"] or 0,
                     summary["rate"]["gbps"] or 0.0))
        if over:
            return rows


def plot(rows, path):
    import matplotlib
    if path:
        matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    figure, (rate, loss) = pyplot.subplots(2, sharex=True)
    seconds = [row[0] for row in rows]
    rate.plot(seconds, [row[4] for row in rows])
    rate.set_ylabel("Gb/s received")
    loss.step(seconds, [row[2] for row in rows], label="lost", where="post")
    loss.step(seconds, [row[3] for row in rows], label="damaged", where="post")
    loss.set_ylabel("frames so far")
    loss.set_xlabel("seconds")
    loss.legend()
    if path:
        figure.savefig(path, dpi=80)
    else:
        pyplot.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", help="receive here, from a sender elsewhere (gdrcap replay)")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pattern", default="prbs31")
    parser.add_argument("--gpu", default="auto")
    parser.add_argument("--file", help="write the plot here")
    args = parser.parse_args()

    options = {"seconds": args.seconds, "pattern.name": args.pattern, "gpu": args.gpu}
    options.update({"port": args.port} if args.port else {"port": "ring:prbs", "tx_port": "ring:prbs"})
    with gdrcap.Session(options) as session:
        rows = watch(session, args.seconds / 50)
    summary = session.summary()
    bits = summary["bits"]
    print("%s: %d frames, %d lost, %d damaged; %d bits checked, %d wrong" % (
        summary["result"], summary["frames"]["received"], summary["frames"]["lost"] or 0, summary["frames"]["damaged"],
        bits["checked"], bits["wrong"]))
    plot(rows, args.file)


if __name__ == "__main__":
    main()
