# A Redis server in memory, its values of 2 MiB, filled from a file, then read and written at random places by a
# script in the server: sh redis.sh SERVER FOLDER BYTES STEPS [BEFORE...]. BEFORE stands before the server: what it
# runs under. Seconds from the first value to the end of the script, and a digest.
server=$1 folder=$2 count=$(($3 / 2097152)) steps=$4
shift 4
socket=$folder/redis.sock value=$folder/redis.value
client() { "${server%-server}-cli" -s "$socket" "$@"; }
"$@" "$server" --port 0 --unixsocket "$socket" --save '' --appendonly no >/dev/null </dev/null &
under=$!
trap 'kill $under' TERM INT
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ "$(client ping 2>/dev/null)" = PONG ] && break
  sleep 0.1
done
[ -s "$value" ] || seq -f 'user-%07.0f;visits-00000;' 90000 | head -c 2097152 >"$value"
began=$(date +%s%N)
key=0
while [ $key -lt $count ]; do
  client -x set k$key <"$value" >/dev/null || exit 1
  key=$((key + 1))
done
digest=$(client eval '
local count, steps, x, sum = tonumber(ARGV[1]), tonumber(ARGV[2]), 1, 0
for step = 1, steps do
  x = x * 16807 % 2147483647
  local key = "k" .. x % count
  x = x * 16807 % 2147483647
  local at = x % 2097000
  if step % 4 == 0 then
    redis.call("SETRANGE", key, at, string.format("%08d", step))
  else
    local first, second = string.byte(redis.call("GETRANGE", key, at, at + 15), 1, 2)
    sum = (sum * 31 + first * 256 + second) % 2147483647
  end
end
return tostring(sum)' 0 $count $steps) || exit 1
ended=$(date +%s%N)
client shutdown nosave >/dev/null 2>&1
wait $under || exit 1
echo "$(((ended - began) / 1000000000)).$(printf %09d $(((ended - began) % 1000000000))) $digest"
