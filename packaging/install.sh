#!/bin/sh
# Verifies the archive beside this script by SHA256SUMS, and installs it below a prefix.
#
#   sh install.sh [--prefix DIR]        DIR is /usr/local where none is named
#   sh install.sh --uninstall [--prefix DIR]
set -eu

prefix=/usr/local
uninstall=false
while [ $# -gt 0 ]; do
    case $1 in
        --prefix)
            [ $# -ge 2 ] || { echo "install.sh: --prefix needs a directory" >&2; exit 2; }
            prefix=$2
            shift 2
            ;;
        --uninstall)
            uninstall=true
            shift
            ;;
        *)
            echo "usage: sh install.sh [--uninstall] [--prefix DIR]" >&2
            exit 2
            ;;
    esac
done

list=$prefix/share/doc/pgclinic/installed-files
if $uninstall; then
    [ -e "$list" ] || { echo "install.sh: nothing of pgclinic is installed below $prefix" >&2; exit 1; }
    while read -r file; do rm -f "$prefix/$file"; done <"$list"
    rm -f "$list"
    rmdir "$prefix/share/doc/pgclinic" 2>/dev/null || :
    echo "removed from $prefix"
    exit 0
fi

cd "$(dirname "$0")"
machine=$(uname -m)
archive=$(ls pgclinic-*-linux-"$machine".tar.gz 2>/dev/null | tail -n 1)
[ -n "$archive" ] || { echo "install.sh: there is no archive for $machine beside this script" >&2; exit 1; }
sum=$(grep " $archive\$" SHA256SUMS) || { echo "install.sh: SHA256SUMS does not name $archive" >&2; exit 1; }
echo "$sum" | sha256sum -c - >/dev/null 2>&1 || {
    echo "install.sh: $archive is damaged or not the one that SHA256SUMS names; nothing was installed" >&2
    exit 1
}

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
tar -xzf "$archive" -C "$staging" --strip-components=1
mkdir -p "$prefix"
(cd "$staging" && find . -type f | sed 's,^\./,,' | sort) >"$staging.list"
cp -R "$staging/." "$prefix/"
mkdir -p "$(dirname "$list")"
mv "$staging.list" "$list"
echo "installed $("$prefix/bin/pgclinic" --version) in $prefix/bin; remove it with: sh install.sh --uninstall --prefix $prefix"
