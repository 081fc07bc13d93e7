#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches DPDK's source archive, from DPDK's own server, else from the distribution's source package,
# and unpacks it where Meson looks for it before it downloads anything. Either must have the hash of
# dpdk.wrap. Changes nothing outside subprojects; needs no root.
set -eu
cd "$(dirname "$0")/.."

wrap_value() {
	sed -n "s/^$1 *= *//p" subprojects/dpdk.wrap
}
directory=$(wrap_value directory)
url=$(wrap_value source_url)
hash=$(wrap_value source_hash)
cache=subprojects/packagecache
file=$cache/$(wrap_value source_filename)

is_right() {
	echo "$hash  $1" | sha256sum --check --status 2>/dev/null
}

# Of an unpacking by Meson that was stopped half way this file, one of the last, is missing.
if test -f "subprojects/$directory/usertools/meson.build"; then
	exit 0
fi

tmp=$(mktemp -d)
unpacking=subprojects/dpdk-unpacking.$$
trap 'rm -rf "$tmp" "$unpacking"' EXIT
trap 'exit 1' HUP INT TERM

# Whole or not at all: who interrupts it finds nothing half done the next time.
unpack() {
	echo "dpdk-source: unpacking $file"
	rm -rf "subprojects/$directory"
	mkdir -p "$unpacking"
	tar -xf "$file" -C "$unpacking"
	mv "$unpacking/$directory" "subprojects/$directory"
}

if test -f "$file"; then
	if is_right "$file"; then
		unpack
		exit 0
	fi
	echo "dpdk-source: $file has the wrong SHA-256 and is fetched anew"
fi

from_upstream() {
	command -v curl >/dev/null || return 1
	echo "dpdk-source: fetching $url"
	curl -fsSL --connect-timeout 10 --speed-limit 1000 --speed-time 20 -o "$tmp/archive" "$url" ||
		{ echo "dpdk-source: not to be had there; trying the distribution"; return 1; }
}

# The machine's own package sources of this release, as source-code entries.
write_sources() {
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	mkdir "$tmp/sources"
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		test -r "$list" || continue
		grep -E "^deb(-src)?[[:space:]].*[[:space:]]$codename(-updates|-security|/updates)?[[:space:]]" \
			"$list" | sed -E 's/^deb(-src)?/deb-src/' >>"$tmp/sources/own.list" || true
	done
	for list in /etc/apt/sources.list.d/*.sources; do
		test -r "$list" || continue
		awk -v RS= -v codename="$codename" '
			{
				ours = 0
				enabled = 1
				lines = split($0, line, "\n")
				for (i = 1; i <= lines; i++) {
					if (tolower(line[i]) ~ /^enabled:[ \t]*no/)
						enabled = 0
					if (line[i] ~ /^Types:/)
						line[i] = "Types: deb-src"
					if (line[i] ~ /^Suites:/)
						ours = line[i] " " ~ "[ \t]" codename "(-updates|-security|/updates)?[ \t]"
				}
				if (!ours || !enabled)
					next
				for (i = 1; i <= lines; i++)
					print line[i]
				print ""
			}' "$list" >>"$tmp/sources/own.sources"
	done
	cat "$tmp"/sources/* 2>/dev/null | grep -q deb-src
}

apt_private() {
	tool=$1
	shift
	"$tool" -q -o Dir::State="$tmp/state" -o Dir::State::Lists="$tmp/lists" \
		-o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$tmp/cache" \
		-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$tmp/sources" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none "$@"
}

# Versions of the source package that the distribution has, with the hash of their archive.
list_versions() {
	apt_private apt-cache showsrc --only-source dpdk 2>/dev/null | awk '
		/^Version:/ { version = $2 }
		/^Checksums-/ { sha256 = $1 == "Checksums-Sha256:" }
		sha256 && $3 ~ /\.orig\.tar\./ && $3 !~ /\.asc$/ { print version, $1 }' | sort -u
}

from_distribution() {
	command -v apt-get >/dev/null || return 1
	echo "dpdk-source: looking into the distribution's source packages"
	write_sources || return 1
	mkdir -p "$tmp/state" "$tmp/lists/partial" "$tmp/cache/archives/partial"
	apt_private apt-get update >"$tmp/log" 2>&1 || cat "$tmp/log"
	versions=$(list_versions)
	version=$(echo "$versions" | awk -v hash="$hash" '$2 == hash { print $1; exit }')
	if test -z "$versions"; then
		echo "dpdk-source: its package lists name no source of DPDK; without a network they" \
			"cannot be fetched"
		return 1
	fi
	if test -z "$version"; then
		echo "dpdk-source: this distribution has the source of DPDK" \
			"$(echo "$versions" | awk '{ printf "%s ", $1 }')- another one is needed"
		return 1
	fi
	echo "dpdk-source: fetching the source package dpdk $version"
	(cd "$tmp" && apt_private apt-get source --download-only --only-source "dpdk=$version" \
		>"$tmp/log" 2>&1) || cat "$tmp/log"
	for archive in "$tmp"/dpdk_*.orig.tar.*; do
		if is_right "$archive"; then
			mv "$archive" "$tmp/archive"
			return 0
		fi
	done
	return 1
}

mkdir -p "$cache"
for from in from_upstream from_distribution; do
	rm -f "$tmp/archive"
	$from || continue
	if ! is_right "$tmp/archive"; then
		echo "dpdk-source: what came has the wrong SHA-256 and is not used"
		continue
	fi
	mv "$tmp/archive" "$file"
	unpack
	exit 0
done

cat >&2 <<EOF
dpdk-source: could not get $(basename "$file"). Either
  - fetch $url on a machine that can reach it, and put it here as
    $PWD/$file; or
  - install DPDK 22.11 or later, built with -Denable_driver_sdk=true, and give
    MESON_ARGS=-Dsystem_dpdk=true to make.
EOF
exit 1
