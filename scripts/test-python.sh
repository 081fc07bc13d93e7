#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: test-python.sh BUILD
#
# Makes BUILD/venv, with the packages of tests/e2e/requirements.txt that some tests compare with. They are
# skipped where these cannot be had: that is no failure.
set -u
cd "$(dirname "$0")/.."
folder=$1/venv
test -f "$folder/complete" && cmp -s tests/e2e/requirements.txt "$folder/complete" && exit 0
echo "test-python: installing $(grep -v '^#' tests/e2e/requirements.txt | tr '\n' ' ')into $folder"
rm -rf "$folder"
if python3 -m venv "$folder" >"$folder.log" 2>&1 &&
	timeout 300 "$folder/bin/pip" install -q --disable-pip-version-check --only-binary :all: \
		-r tests/e2e/requirements.txt >>"$folder.log" 2>&1; then
	cp tests/e2e/requirements.txt "$folder/complete"
else
	tail -3 "$folder.log"
	echo "test-python: not to be had here; tests that need them are skipped"
fi
exit 0
