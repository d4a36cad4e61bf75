//! Servers and MPI jobs: each a script that starts it in its folder, asks the same of it every time, and ends it.
//!
//! A line `rate: N` says how much it did in a second, and is not compared; `note: WORDS` says what it is.

/// PostgreSQL with `pgbench`: tables made anew, transactions of two clients, sums, and a clean end.
pub(super) const POSTGRES_SH: &str = r#"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
"$bin/initdb" -D data -A trust -U me --no-sync -E UTF8 --locale=C >initdb.log || exit 1
"$bin/postgres" -D data -k "$PWD" -c listen_addresses= -c fsync=off -c autovacuum=off >log 2>&1 &
server=$!
for i in $(seq 300); do "$bin/pg_isready" -q -h "$PWD" && break; sleep 0.1; done
as() { "$@" -h "$PWD" -U me; }
as createdb b
as pgbench -i -s 4 -q b 2>/dev/null
as pgbench -n -c 2 -j 2 -t 3000 --random-seed=7 b 2>/dev/null | awk '/^tps/ { print "rate: " $3 } /actually processed/'
as psql -qAt b <<'END'
select count(*) from pgbench_history;
select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches);
create table t as select i, md5(i::text) as m, i * 7919 % 1009 as k from generate_series(1, 120000) i;
create index on t (m); create index on t (k);
select k, count(*), min(m), max(length(m)) from t group by k order by k limit 40;
select count(*) from t a join t b on a.m = b.m where a.k < b.k + 1;
select md5(string_agg(m, ',' order by i)) from t;
select md5(json_agg(t order by i)::text) from t where k < 100;
END
kill -INT $server; wait $server; echo server ended with $?
"#;

/// memcached on a socket in its folder; the client keeps it busy with batches, and reads everything back.
pub(super) const MEMCACHED_SH: &str = r#"
memcached -u root -s "$PWD/s" -m 256 -t 2 >log 2>&1 &
server=$!
for i in $(seq 100); do [ -S s ] && break; sleep 0.1; done
python3 client.py "$PWD/s" || echo client failed
kill -INT $server; wait $server; echo server ended with $?
"#;

/// The client of memcached: 600,000 commands of four connections in batches of a hundred.
pub(super) const MEMCACHED_PY: &str = r#"
import hashlib, socket, sys, time
conns = [socket.socket(socket.AF_UNIX) for _ in range(4)]
for c in conns: c.connect(sys.argv[1])
files = [c.makefile("rb") for c in conns]
def value(i): return b"v%d" % (i * 7919) * (1 + i % 40)
begin, commands = time.time(), 0
for turn in range(2):
    for first in range(0, 100_000, 400):
        for at, c in enumerate(conns):
            batch = range(first + at * 100, first + at * 100 + 100)
            c.sendall(b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (i, len(value(i + turn)), value(i + turn)) for i in batch))
        for f in files:
            for _ in range(100): assert f.readline() == b"STORED\r\n"
        commands += 400
whole = hashlib.sha256()
for first in range(0, 100_000, 100):
    at = first // 100 % 4
    conns[at].sendall(b"get " + b" ".join(b"k%d" % i for i in range(first, first + 100)) + b"\r\n")
    while True:
        line = files[at].readline()
        if line == b"END\r\n": break
        whole.update(files[at].read(int(line.split()[3]) + 2))
    commands += 100
print("rate:", commands / (time.time() - begin))
print(whole.hexdigest())
"#;

/// MariaDB: its own load generator, tables of known content, checksums, and a clean end.
pub(super) const MARIADB_SH: &str = r#"
mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$PWD/data" --auth-root-authentication-method=normal >install.log 2>&1 || exit 1
mariadbd --no-defaults --user="$(id -un)" --datadir="$PWD/data" --socket="$PWD/s" --pid-file="$PWD/pid" --skip-networking >log 2>&1 &
server=$!
for i in $(seq 300); do mariadb-admin --no-defaults -u root -S "$PWD/s" ping >/dev/null 2>&1 && break; sleep 0.1; done
begin=$(date +%s.%N)
mariadb-slap --no-defaults -u root -S "$PWD/s" --concurrency=2 --number-of-queries=6000 --auto-generate-sql --auto-generate-sql-load-type=mixed >slap.log || echo slap failed
date +%s.%N | awk -v begin="$begin" '{ print "rate: " 6000 / ($1 - begin) }'
mariadb --no-defaults -u root -S "$PWD/s" -N <<'END'
create database b; use b;
create table t (i int primary key, m char(32), k int, key (m), key (k)) engine=innodb;
insert into t select seq, md5(seq), seq * 7919 % 1009 from seq_1_to_60000;
select k, count(*), min(m) from t group by k order by k limit 40;
select count(*) from t a join t b on a.m = b.m where a.k <= b.k;
delete from t where i % 7 = 0;
checksum table t;
select md5(group_concat(m order by i)) from t where k < 100;
END
mariadb-admin --no-defaults -u root -S "$PWD/s" shutdown
wait $server; echo server ended with $?
"#;

/// nginx in its folder, asked by `ab` and by Python, with a page that it puts together and compresses.
pub(super) const NGINX_SH: &str = r#"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir -p html logs temp
for i in $(seq 400); do echo "<p>line $i of part</p>"; done >html/part.html
for i in 1 2 3 4; do printf '<!--# include virtual="/part.html" -->\n<!--# echo var="arg_x" -->\n'; done >html/index.html
cat >conf <<END
user $(id -un); worker_processes 2; daemon off; pid nginx.pid; error_log log;
events { worker_connections 128; }
http { access_log off; ssi on; gzip on; gzip_min_length 64; default_type text/html; client_body_temp_path temp;
proxy_temp_path temp; fastcgi_temp_path temp; uwsgi_temp_path temp; scgi_temp_path temp;
server { listen 127.0.0.1:$port; root html; location / { } } }
END
nginx -p "$PWD" -c conf >out 2>&1 &
server=$!
for i in $(seq 100); do [ -s nginx.pid ] && break; sleep 0.1; done
ab -q -n 12000 -c 8 -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/?x=7" | awk '/^Requests per second/ { print "rate: " $4 } /^Failed requests|^Complete/'
python3 - "$port" <<'END'
import hashlib, sys, urllib.request, gzip
for x in range(3):
    ask = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/?x={x}", headers={"Accept-Encoding": "gzip"})
    print(hashlib.sha256(gzip.decompress(urllib.request.urlopen(ask).read())).hexdigest())
END
kill -QUIT $server; wait $server; echo server ended with $?
"#;

/// An MPI program of two ranks: collectives of many sizes and point-to-point messages, and what they gave.
pub(super) const RANKS_C: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size; MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned long long sum = 0; double begin = MPI_Wtime();
    char *kept[4096]; memset(kept, 0, sizeof kept);
    for (int round = 0; round < 4000; round++) {
        int count = 1 + round * 31 % 3000, at = round % 4096;
        free(kept[at]); kept[at] = malloc(16 + round % 240); kept[at][0] = (char)round;
        long *send = malloc(count * sizeof *send), *got = malloc(count * size * sizeof *got);
        for (int i = 0; i < count; i++) send[i] = (long)round * i + rank;
        MPI_Allreduce(send, got, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i += 7) sum = sum * 31 + (unsigned long long)got[i];
        MPI_Allgather(send, count, MPI_LONG, got, count, MPI_LONG, MPI_COMM_WORLD);
        for (int i = 0; i < count * size; i += 13) sum = sum * 31 + (unsigned long long)got[i];
        MPI_Bcast(send, count, MPI_LONG, round % size, MPI_COMM_WORLD);
        MPI_Sendrecv(send, count, MPI_LONG, (rank + 1) % size, 3, got, count, MPI_LONG, (rank + size - 1) % size, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += (unsigned long long)got[count - 1];
        if (round % 500 == 0) { MPI_Comm copy; MPI_Comm_dup(MPI_COMM_WORLD, &copy); MPI_Barrier(copy); MPI_Comm_free(&copy); }
        free(send); free(got);
    }
    double seconds = MPI_Wtime() - begin;
    unsigned long long *all = calloc(size, sizeof *all);
    MPI_Gather(&sum, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) { for (int r = 0; r < size; r++) printf("rank %d: %llu\n", r, all[r]); printf("rate: %f\n", 4000 / seconds); }
    MPI_Finalize();
}
"#;

/// The job under Open MPI. What is preloaded is that of the job, in the order that the variable `ORDER` has, where
/// `malloc` stands for what is preloaded already.
pub(super) const OPENMPI_SH: &str = r#"
mpicc.openmpi -O1 ranks.c -o ranks || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [ -n "$LD_PRELOAD" ] && [ -n "$ORDER" ]; then
  all=
  for one in $ORDER; do
    case $one in malloc) one=$LD_PRELOAD ;; mpi) one=$MPI_LIBRARY ;; mimalloc) one=$(ls /usr/lib/*/libmimalloc.so.2 | head -n 1) ;; esac
    all=$all${all:+:}$one
  done
  LD_PRELOAD=$all
fi
mpirun.openmpi --oversubscribe -n 2 $MCA ./ranks
echo job ended with $?
"#;
