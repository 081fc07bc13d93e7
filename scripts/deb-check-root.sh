#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: deb-check-root.sh ROOT FOLDER
#
# A hook of mmdebstrap for deb-check.sh. ROOT has Debian's minimal packages; FOLDER/packages are tried in it, and the tests
# of FOLDER/source.
set -eu
root=$1
folder=$2
user=1000
# What apt, dpkg and ldconfig keep for themselves differs after any package; of accounts list_files has the lines.
kept="proc sys dev tmp var/lib/apt var/lib/dpkg var/cache/apt var/cache/debconf var/cache/ldconfig var/log/apt var/log/dpkg.log
	etc/ld.so.cache"
accounts="etc/passwd etc/group etc/shadow etc/gshadow"

say() {
	echo "==== $*"
}

in_root() {
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

apt() {
	if ! in_root apt-get -q -y -o Dpkg::Use-Pty=0 -o APT::Install-Recommends=false "$@" >"$root/tmp/log" 2>&1; then
		cat "$root/tmp/log" >&2
		exit 1
	fi
}

# An ordinary user, without any capability and without a way to one.
as_user() {
	in_root setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
		env HOME=/tmp/home TMPDIR=/tmp/home "$@"
}

# What is there, of which kind and whose, and what is in it.
list_files() {
	(
		cd "$root"
		set -- -false
		for path in $kept $accounts; do
			set -- "$@" -o -path "./$path" -o -path "./$path-"
		done
		find . \( "$@" \) -prune -o -printf '%p %y %m %U:%G %l\n'
		find . \( "$@" \) -prune -o -type f -exec sha256sum {} +
		grep . $accounts
	) | sort
}

list_packages() {
	in_root dpkg-query -W -f '${Package} ${Status}\n' | sort
}

# Of all of them, but not one another.
say "what they depend on"
names=
depends=
mkdir "$root/tmp/packages"
for package in "$folder"/packages/*.deb; do
	cp "$package" "$root/tmp/packages"
	names="$names $(dpkg-deb -f "$package" Package)"
	depends="$depends$(dpkg-deb -f "$package" Depends), "
done
chmod -R a+rX "$root/tmp/packages"
others=$(echo "$depends" | tr ',' '\n' | sed 's/^ *//; /^$/d; /^\(lib\|python3-\)\{0,1\}gdrcap/d' | sort -u | paste -sd,)
apt update
apt satisfy "$others"
list_packages >"$root/tmp/packages-before"
list_files >"$root/tmp/files-before"
say "$(wc -l <"$root/tmp/packages-before") packages are there, $(find "$root" -xdev -type f | wc -l) files"

say "apt install$names"
install_all() {
	# shellcheck disable=SC2046 # a list of names without spaces
	apt install $(cd "$root" && find tmp/packages -name '*.deb' -printf '/%p ')
}
install_all
list_packages >"$root/tmp/packages-after"
new=$(comm -13 "$root/tmp/packages-before" "$root/tmp/packages-after" | cut -d' ' -f1 | sort | paste -sd' ')
if test "$new" != "$(printf '%s\n' $names | sort | paste -sd' ')"; then
	echo "deb-check: apt installed $new" >&2
	exit 1
fi

say "as an ordinary user, with nothing but what they depend on"
install -d -o $user -g $user "$root/tmp/home"
as_user gdrcap --version
as_user gdrcap loopback --frames 100000
rc=0
as_user gdrcap doctor || rc=$?
# A machine that is not able to, as this one may be, is status 3.
test $rc = 0 || test $rc = 3
as_user python3 -c 'import gdrcap; print("import gdrcap:", gdrcap.__version__)'
for file in man/man1/gdrcap.1.gz man/man1/gdrcap-capture.1.gz man/man5/gdrcap.yaml.5.gz bash-completion/completions/gdrcap; do
	test -s "$root/usr/share/$file"
done
in_root id gdrcap

say "apt purge$names"
# As the service has left them: logs go, and a folder without recordings.
mkdir -p "$root/var/log/gdrcap" "$root/var/lib/gdrcap"
touch "$root/var/log/gdrcap/cam0.jsonl"
# shellcheck disable=SC2086 # a list of words
apt purge $names
list_packages >"$root/tmp/packages-after"
list_files >"$root/tmp/files-after"
left=$(diff "$root/tmp/packages-before" "$root/tmp/packages-after" || true
	diff "$root/tmp/files-before" "$root/tmp/files-after" | grep '^[<>]' || true)
# An account stays: its number must not come to stand for somebody else in files that it owned.
account=$(echo "$left" | grep -c '^> etc/[a-z]*:gdrcap:' || true)
left=$(echo "$left" | grep -v '^> etc/[a-z]*:gdrcap:' || true)
if test -n "$left"; then
	echo "deb-check: this is not as it was before:" >&2
	echo "$left" >&2
	exit 1
fi
say "nothing stays but the account gdrcap, $account lines"

install_all
awk '/^Tests:/ { name = $2 } /^Depends:/ { sub(/^Depends: */, ""); print name ":" $0 }' \
	"$folder/source/debian/tests/control" >"$folder/tests"
cp -R "$folder/source" "$root/tmp/source"
chmod -R a+rX "$root/tmp/source"
while IFS=: read -r name depends; do
	say "debian/tests/$name, on what is installed"
	apt satisfy "$depends"
	as_user sh -c 'cd /tmp/source && "debian/tests/$1"' sh "$name" </dev/null
done <"$folder/tests"
