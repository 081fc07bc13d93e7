#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One machine's part of a run over several, for a launcher that starts it as a number of ranks: mpirun, srun, an Indexed
# Job of Kubernetes.
# The first RECEIVERS ranks receive, the others send when all of those are ready.
#
#     mpirun --mca orte_abort_on_non_zero_status 0 -n 12 --map-by node rank.sh FOLDER 4 \
#         '--port 0000:3b:00.0 --senders 2' '--tx-port 0000:3b:00.0 --first-stream {rank}00 --frames 1M --start-at +1'
#     srun -n 12 --kill-on-bad-exit=0 rank.sh FOLDER 4 ...
#
# FOLDER is one that all machines see, and new for each run: it gets rxN.ready, and of each rank its summary, rxN.json
# or txN.json. {rank} in options is the rank's number. GDRCAP names the program (gdrcap). The exit status is gdrcap's; a
# launcher that ends all ranks when one of them fails would take the other verdicts along, hence the options above.
set -euf

if [ $# -ne 4 ]; then
	echo "usage: rank.sh FOLDER RECEIVERS 'OPTIONS OF capture' 'OPTIONS OF replay'" >&2
	exit 2
fi
folder=$1 receivers=$2
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${SLURM_PROCID:-${JOB_COMPLETION_INDEX:-}}}}
case $rank-$receivers in
-* | *[!0-9-]* | *-)
	echo "rank.sh: no rank (mpirun, srun and Indexed Jobs say it in the environment), or no number of receivers" >&2
	exit 2
	;;
esac

if [ "$rank" -lt "$receivers" ]; then
	name=rx$rank
	options=$(printf '%s' "$3" | sed "s/{rank}/$rank/g")
	set -- capture --ready "$folder/$name.ready"
else
	name=tx$rank
	options=$(printf '%s' "$4" | sed "s/{rank}/$rank/g")
	set -- replay
	i=0
	while [ "$i" -lt "$receivers" ]; do
		set -- "$@" --wait-ready "$folder/rx$i.ready"
		i=$((i + 1))
	done
fi
if [ -e "$folder/$name.json" ]; then
	echo "rank.sh: $folder has $name.json of another run: take a new folder for each" >&2
	exit 2
fi
# Words of the options, on purpose. Without exec: what is in the file is whole when this script ends.
# shellcheck disable=SC2086
${GDRCAP:-gdrcap} "$@" $options --json --quiet > "$folder/$name.json.part" && status=0 || status=$?
mv "$folder/$name.json.part" "$folder/$name.json"
echo "rank $rank ($name, $(uname -n)): exit status $status"
exit "$status"
