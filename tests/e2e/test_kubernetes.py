# SPDX-License-Identifier: BSD-3-Clause
"""deploy/kubernetes: manifests that are valid, to the last field, and refused when one is not; and the script of the Indexed
Job, run in network namespaces as its pods would."""
import contextlib
import functools
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import e2e
import machines
import processes

FOLDER = e2e.ROOT / "deploy" / "kubernetes"
FRAMES = 400
# What is broken, in which file: a field that there is none of, and a value of another kind.
BROKEN = {
    "base/job.yaml": ("backoffLimit:", "backoffLimits:"),
    "two-node/job.yaml": ("completionMode: Indexed", "completionModes: Indexed"),
    "two-node/settings.yaml": ("\ndata:", "\ndates:"),
    "two-node/volume.yaml": ("[ReadWriteMany]", "ReadWriteMany"),
    "capture/deployment.yaml": ("terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: long"),
    "verify-gpu/job.yaml": ("restartPolicy:", "restartsPolicy:"),
}


def python():
    """One that has kubernetes-validate, and with it a reader of YAML."""
    if not importlib.util.find_spec("kubernetes_validate"):
        raise e2e.Skip("this Python has no kubernetes-validate: scripts/test-python.sh build")
    return sys.executable


@functools.lru_cache(maxsize=None)
def load(path):
    """The objects of a file of YAML."""
    script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
    return json.loads(processes.output(python(), "-c", script, str(path)))


def validate(*paths):
    """(exit status, what was said) of the whole as Kubernetes' own schemas have it."""
    done = subprocess.run([python(), "-m", "kubernetes_validate", "--strict", *map(str, paths)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=e2e.TIMEOUT)
    return done.returncode, done.stdout


def manifests():
    return {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.glob("*/*.yaml"))
            if path.name != "kustomization.yaml"}


def test_valid():
    status, said = validate(*manifests().values())
    assert status == 0 and said.count(" passed ") == len(manifests()) and "WARN" not in said, said


def test_one_field_broken():
    assert set(BROKEN) == set(manifests()), manifests()
    with e2e.Folder() as folder:
        files = []
        for name, (right, wrong) in BROKEN.items():
            text = manifests()[name].read_text()
            assert text.count(right) == 1, (name, right)
            files.append(pathlib.Path(folder) / name.replace("/", "-"))
            files[-1].write_text(text.replace(right, wrong))
        status, said = validate(*files)
        assert status != 0 and " passed " not in said, said
        for file in files:
            assert file.name in said, said


def test_kustomizations():
    """Each names files and folders that there are, and all of the manifests beside it; none has an image of its own."""
    for path in [*FOLDER.glob("*/kustomization.yaml"), e2e.ROOT / "deploy" / "machines" / "kustomization.yaml"]:
        [found] = load(path)
        assert found["kind"] == "Kustomization" and found["apiVersion"] == "kustomize.config.k8s.io/v1beta1", found
        named = {(path.parent / name).resolve() for name in found.get("resources", [])}
        for made in found.get("configMapGenerator", []):
            # Of the folder itself: kustomize reads no files above it.
            assert all((path.parent / name).is_file() and "/" not in name for name in made["files"]), made
        for one in named:
            assert one.is_file() or (one / "kustomization.yaml").is_file(), one
        if path.parent.parent == FOLDER:
            beside = {file.resolve() for file in path.parent.glob("*.yaml")} - {path.resolve()}
            assert beside <= named, (beside, named)
    for name, path in manifests().items():
        for thing in load(path):
            for pod in pods_of(thing):
                assert [container["image"] for container in pod] == ["gdrcap"] * len(pod), name


def pods_of(thing):
    if thing["kind"] in ("Job", "Deployment"):
        spec = thing["spec"]["template"]["spec"]
        yield spec.get("initContainers", []) + spec["containers"]


def test_rights():
    """No pod is privileged, and each drops what it does not name."""
    for name, path in manifests().items():
        for thing in load(path):
            for container in (container for pod in pods_of(thing) for container in pod):
                context = container["securityContext"]
                assert context["capabilities"]["drop"] == ["ALL"] and "privileged" not in context, name
                assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"], name


def test_rights_for_cards():
    """Where there is a ConnectX a pod has what the service has, as its doctor asks for it and would not let it begin."""
    unit = (FOLDER.parent / "systemd" / "gdrcap-capture@.service.in").read_text()
    service = {name[4:] for name in re.search(r"^AmbientCapabilities=(.*)$", unit, re.M)[1].split()}
    asked = (e2e.ROOT / "app" / "doctor" / "checks_host.c").read_text()
    # Of locked memory it asks otherwise.
    assert service == set(re.findall(r"\{ CAP_(\w+), \"\w+\" \}", asked)) | {"IPC_LOCK"}, service
    for name in ("verify-gpu/job.yaml", "capture/deployment.yaml"):
        [thing] = load(FOLDER / name)
        for container in (container for pod in pods_of(thing) for container in pod):
            assert set(container["securityContext"]["capabilities"]["add"]) == service, (name, container["name"])


def test_options_exist():
    """The commands that need what is not here: each of their options is one of the program's."""
    for name in ("verify-gpu/job.yaml", "capture/deployment.yaml"):
        [thing] = load(FOLDER / name)
        [script] = [container["command"][2] for pod in pods_of(thing) for container in pod if len(container["command"]) == 3]
        command = re.search(r"exec gdrcap (\w+)", script)[1]
        known = e2e.run(command, "--help").out
        for option in re.findall(r"--[a-z-]+", script):
            assert re.search(r"%s\b" % option, known), (name, option)


def test_verify_command():
    """What base/job.yaml runs is a run that passes, by an ordinary user."""
    [job] = load(FOLDER / "base" / "job.yaml")
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][0] == "gdrcap", container
    options = {}
    if os.geteuid() == 0:
        options = processes.nobody()
    with processes.folder() as folder:
        options["env"] = {**options.get("env", os.environ), "XDG_RUNTIME_DIR": folder}
        words = {"1M": "20000", "--json": "--quiet"}
        summary = e2e.run_json(*(words.get(word, word) for word in container["command"][1:]), **options)
    e2e.check_perfect(summary, 20000)


# ---- the Indexed Job ----

class Pod:
    """A pod of the Job: its script, in a network namespace, with the environment that it would have there."""

    def __init__(self, network, machine, index, folder, **settings):
        [job], [run] = load(FOLDER / "two-node" / "job.yaml"), load(FOLDER / "two-node" / "settings.yaml")
        spec = job["spec"]
        assert spec["completionMode"] == "Indexed" and str(spec["completions"]) == run["data"]["RANKS"], spec
        [container] = spec["template"]["spec"]["containers"]
        given = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert set(given) == {"SHARED", "SCRIPTS", "RUN"}, given
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("OMPI_", "PMIX_", "SLURM_"))}
        environment = {**clean, **run["data"], "SHARED": folder, "RUN": "0b1c",
                       "SCRIPTS": str(e2e.ROOT / "deploy" / "machines"), "GDRCAP": e2e.PROGRAM,
                       "JOB_COMPLETION_INDEX": str(index), **settings}
        self.process = subprocess.Popen([*network.inside(machine), *container["command"]], env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self):
        """Exit status, and its lines."""
        out, self.err = self.process.communicate(timeout=e2e.TIMEOUT)
        return self.process.returncode, out.splitlines()


@contextlib.contextmanager
def two_nodes():
    """Their second network's interface has Multus' name in both."""
    with machines.Machines(1, 1) as network, processes.folder() as folder:
        for machine, interface in (("rx0", "from0"), ("tx0", "out")):
            for words in (("down",), ("name", "net1"), ("up",)):
                network.ip(machine, "link", "set", "net1" if words == ("up",) else interface, *words)
        assert processes.wait_until(lambda: "state UP" in network.ip("tx0", "link", "show", "net1"))
        yield network, folder


QUIET = " --idle-sleep 500 --gpu host --descriptors 256"


def test_two_nodes():
    """A pod receives, the other one sends, and the last line of the first is the verdict of both."""
    with two_nodes() as (network, folder):
        settings = {"RECEIVE": "--senders 1" + QUIET,
                    "SEND": "--frames %d --rate 2kpps --first-stream {rank}00 --wait-seconds 0%s" % (FRAMES, QUIET)}
        pods = [Pod(network, machine, index, folder, **settings)
                for index, machine in enumerate(("rx0", "tx0"))]
        ends = [pod.finish() for pod in pods]
        assert [status for status, _ in ends] == [0, 0], (ends, [pod.err for pod in pods])
        assert sorted(os.listdir(os.path.join(folder, "0b1c"))) == ["rx0.json", "rx0.ready", "tx1.json"]
    merged = json.loads(ends[0][1][-1])
    assert merged["schema"] == "gdrcap.merge/1" and merged["result"] == "pass", merged
    assert merged["frames"]["sent"] == merged["frames"]["valid"] == FRAMES and merged["frames"]["lost"] == 0, merged
    assert [stream["stream"] for stream in merged["streams"]] == [100], merged


def test_a_node_is_missing():
    """It is unknown, and no node that lost nothing."""
    with two_nodes() as (network, folder):
        pod = Pod(network, "rx0", 0, folder, RECEIVE="--seconds 0.5" + QUIET, MERGE_WAIT="1")
        status, lines = pod.finish()
        assert status not in (0, 127), (lines, pod.err)
    merged = json.loads(lines[-1])
    assert merged["result"] == "fail" and [file["state"] for file in merged["files"]][1] == "unknown", merged
