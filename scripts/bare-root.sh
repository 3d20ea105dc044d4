# Bare roots of Debian and Ubuntu in which a fresh machine is tried; to be sourced. Packages come from the sources of this machine: a root of
# Debian from its package sources with another suite's name, one of Ubuntu from the archive that UBUNTU_ARCHIVE names. All is removed at the end.

[ "$(id -u)" = 0 ] || { echo "error: roots are made by root; run this with sudo" >&2; exit 2; }
command -v mmdebstrap > /dev/null || { echo "error: mmdebstrap is not installed; apt install mmdebstrap" >&2; exit 2; }
sources=/etc/apt/sources.list.d/debian.sources
[ -f "$sources" ] || { echo "error: $sources: not there; this script reads the package sources of Debian 12 and newer" >&2; exit 2; }

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
this_suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

step() { # step WORDS COMMAND...: runs it, says how long it took; its output only if it fails
  local words=$1 start=$SECONDS
  shift
  if ! "$@" > "$folder/log" 2>&1; then
    cat "$folder/log" >&2
    printf 'error: %s failed\n' "$words" >&2
    exit 1
  fi
  printf '  %-58s %4d s\n' "$words" $((SECONDS - start))
}

# in_root HOME COMMAND...: in $root; with the network of this machine only if NETWORK=yes, with no network card otherwise.
in_root() {
  local alone=(--net)
  [ "${NETWORK:-no}" = no ] || alone=()
  unshare --mount --pid --fork "${alone[@]}" --kill-child bash -ec '
    root=$1 home=$2; shift 2
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs sys sys
    mount --rbind /dev dev
    ip link set lo up
    mkdir .old
    pivot_root . .old                       # not chroot: nsenter would leave it again
    umount -l /.old
    rmdir /.old
    cd "$home"
    exec env -i HOME="$home" LANG=C.UTF-8 PATH="$home/.local/bin":/usr/sbin:/usr/bin:/sbin:/bin \
      ${CI:+CI="$CI"} ${PIP_CERT:+PIP_CERT=/etc/ssl/certs/ca-certificates.crt} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} "$@"
  ' bash "$root" "$@"
}

ubuntu_keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
fetch_ubuntu_keys() { # Debian 12 has no package of them
  local name=ubuntu-keyring_2023.11.28.1_all.deb sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
  curl --fail --silent --show-error --output "$folder/$name" "$UBUNTU_ARCHIVE/pool/main/u/ubuntu-keyring/$name" &&
    echo "$sum $folder/$name" | sha256sum --check --quiet && dpkg-deb --extract "$folder/$name" "$folder/keys" || return
  ubuntu_keys=$folder/keys$ubuntu_keys
}

sources_of() { # sources_of SUITE: what its root is made of
  case $1 in
    jammy | noble)
      [ -n "${UBUNTU_ARCHIVE:-}" ] || { echo "error: UBUNTU_ARCHIVE: not set; name an archive of Ubuntu, as in its own package sources" >&2; return 2; }
      [ -f "$ubuntu_keys" ] || fetch_ubuntu_keys || return
      printf '%s\n' "Types: deb" "URIs: $UBUNTU_ARCHIVE" "Suites: $1 $1-updates $1-security" "Components: main universe" "Signed-By: $ubuntu_keys"
      ;;
    *) sed "s/$this_suite/$1/g; s/^Signed-By:.*/Signed-By: \/usr\/share\/keyrings\/debian-archive-keyring.gpg/" "$sources" ;;
  esac
}

make_root() { # make_root SUITE PACKAGE,...: $root, with the settings of this machine for packages of Debian and of Python
  local suite=$1 packages=$2 part
  sources_of "$suite" > "$folder/$suite.sources" || return
  mmdebstrap --quiet --variant=minbase --include="apt,ca-certificates,$packages" "$suite" "$root" "$folder/$suite.sources" || return
  sed -i "s|$folder/keys||" "$root"/etc/apt/sources.list.d/*  # the root has the keys too
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  for part in /etc/apt/apt.conf.d/*; do cp -n "$part" "$root/etc/apt/apt.conf.d/" || true; done
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
}
