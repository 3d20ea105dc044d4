# The first process of the guest's kernel: mounts, then runs each command that the relay names on the serial line.
# A command's script, input, output and errors are files of this folder, which is the one of the machine.
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /run
mount -t devtmpfs dev /dev
mkdir -p "$gatemark_folder" /dev/pts /dev/shm /run/netns /run/lock /run/gatemark-jobs
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t hostfs -o "$gatemark_folder" host "$gatemark_folder"
export HOME=/root TMPDIR=/run LANG=C.UTF-8
cd "$gatemark_folder" || exit
files=$gatemark_folder/guest

run() { # run NUMBER: the command is a session of its own, so that a signal reaches all of it
  setsid sh "$files/$1.sh" < "$files/$1.in" > "$files/$1.out" 2> "$files/$1.err" 3>&- &
  echo $! > "/run/gatemark-jobs/$1"
  wait $!
  echo "ended $1 $?" >&3
  rm -f "/run/gatemark-jobs/$1"
}

exec 3<> /dev/ttyS0
stty raw -echo <&3
echo started >&3
while read -r verb number name <&3; do
  case $verb in
    run) run "$number" & ;;
    signal) kill -s "$name" -- "-$(cat "/run/gatemark-jobs/$number")" ;;
  esac
done
exit 1 # without its line the kernel is of no use to anybody, and ends: a panic
