# Ends what its parent leaves behind. Standard input is a pipe that the parent holds and never writes to: it closes when the
# parent ends, SIGKILL included. $1 is the register, a file of lines `pid N`, `gone N` and `folder PATH`, in the order they happened.
trap '' HUP INT TERM
while read -r _; do :; done
# A child that has not registered yet finds no register under that name any more, and gives up before it becomes a server.
mv "$1" "$1.closed" || exit
# A registration that had the file open when it was renamed is written by now or within the first pause.
for _ in 1 2; do
  live=' '
  while read -r what value; do
    case $what in
      pid) live="$live$value " ;;
      gone) case $live in *" $value "*) live="${live%%" $value "*} ${live#*" $value "}" ;; esac ;;
    esac
  done <"$1.closed"
  for pid in $live; do kill -9 "$pid" 2>/dev/null; done
  sleep 0.2
done
while read -r what value; do
  [ "$what" = folder ] || continue
  # A dying server may still write a file.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$value" && break
    sleep 0.1
  done
done <"$1.closed"
rm -rf -- "${1%/*}"
