#!/bin/sh
# Puts the headers that the runner is built with into cpp_runner/third_party, from Debian packages, without root:
# ONNX Runtime's C++ API (its C API only grows, so these drive any later library), JSON, command line, and tests.
# On other systems, put the same headers (onnxruntime/, nlohmann/, CLI/, doctest/) into one folder by other means and
# give it to CMake as -DHEADERS=.
set -eu
here=$(cd "$(dirname "$0")" && pwd)/third_party
complete() {
    for header in onnxruntime/onnxruntime_cxx_api.h nlohmann/json.hpp CLI/CLI.hpp doctest/doctest.h; do
        [ -e "$1/usr/include/$header" ] || return 1
    done
}
complete "$here" && exit 0
for program in apt-get dpkg-deb; do
    command -v $program >/dev/null || {
        echo "fetch_headers.sh: no $program: see the comment in this script for systems other than Debian" >&2
        exit 2
    }
done
sources=$(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true)
[ -n "$sources" ] || { echo "fetch_headers.sh: no list of package sources in /etc/apt" >&2 && exit 2; }
# The mirror that this machine uses already; of it, the release that has ONNX Runtime's headers.
mirror=$(awk '/^URIs:/{print $2; exit} /^deb /{for (i = 2; i <= NF; i++) if ($i ~ /^http/) {print $i; exit}}' $sources)
mkdir -p "$here/apt/lists/partial" "$here/apt/cache/archives/partial" "$here/packages"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$here/apt/trixie.list"
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$here/apt/trixie.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$here/apt/lists" -o Dir::Cache="$here/apt/cache" -o APT::Sandbox::User=root \
        -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false "$@"  # lists of files, which apt-file asks for
}
apt update
(cd "$here/packages" && apt download libonnxruntime-dev nlohmann-json3-dev libcli11-dev doctest-dev)
rm -rf "$here/unpacked" "$here/usr"
for package in "$here"/packages/*.deb; do dpkg-deb -x "$package" "$here/unpacked"; done
complete "$here/unpacked" || { echo "fetch_headers.sh: the packages do not have the headers that are looked for" >&2 && exit 2; }
mv "$here/unpacked/usr" "$here/usr"  # at once, so that what is there is whole
rm -rf "$here/apt" "$here/packages" "$here/unpacked"
