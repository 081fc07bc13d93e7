#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test-python.sh BUILD
#
# Makes BUILD/venv, the Python that runs the tests: with pytest, the system's where it has it, and with the packages of
# tests/e2e/requirements.txt that some tests compare with. Tests are skipped where those cannot be had.
set -eu
cd "$(dirname "$0")/.."
folder=$1/venv
wanted=tests/e2e/requirements.txt
test -f "$folder/complete" && cmp -s $wanted "$folder/complete" && exit 0

version() {
	"$1" -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null
}
has_pytest() {
	"$1" -c 'import pytest, pytest_timeout, xdist' 2>/dev/null
}
# The package is built for the python3 of the PATH: the system's will do if it is the same version.
python=python3
if ! has_pytest python3 && has_pytest /usr/bin/python3 && test "$(version python3)" = "$(version /usr/bin/python3)"; then
	python=/usr/bin/python3
fi
pip() {
	timeout 300 "$folder/bin/python3" -m pip install -q --disable-pip-version-check "$@" >>"$folder.log" 2>&1
}

mkdir -p "$1"
rm -rf "$folder"
if ! $python -m venv --system-site-packages "$folder" >"$folder.log" 2>&1; then
	cat "$folder.log"
	echo "test-python: cannot make $folder: sudo apt-get install python3-venv" >&2
	exit 1
fi
if ! has_pytest "$folder/bin/python3" && ! pip pytest pytest-timeout pytest-xdist; then
	tail -3 "$folder.log"
	echo "test-python: no pytest: sudo apt-get install python3-pytest python3-pytest-timeout python3-pytest-xdist" >&2
	exit 1
fi
echo "test-python: installing $(grep -v '^#' $wanted | tr '\n' ' ')into $folder"
if pip --only-binary :all: -r $wanted; then
	cp $wanted "$folder/complete"
else
	tail -3 "$folder.log"
	echo "test-python: not to be had here; tests that need them are skipped"
fi
