-- A database in memory whose pages lie in one page cache (-pagecache): a table that is filled, then read and written at
-- random places by its key. Seconds from the first statement, and a digest.
create temp table clock as select julianday('now') as began;
create table t(a integer primary key, b integer, c text);
with recursive n(i) as (select 0 union all select i + 1 from n where i < ROWS - 1)
insert into t select i, i * 7919 % 65521, printf('name-%06d;street-%05d;city-%03d;note-%s', i * 31 % 999983,
  i * 17 % 99991, i % 997, substr('the quick brown fox jumps over the lazy dog', 1 + i % 20, 20)) from n;
create temp table seen as
with recursive r(n, x) as (select 1, 48271 union all select n + 1, x * 48271 % 2147483647 from r where n < STEPS)
select total(t.b) as b, total(length(t.c)) as c from r join t on t.a = x % ROWS;
with recursive r(n, x) as (select 1, 69621 union all select n + 1, x * 69621 % 2147483647 from r where n < STEPS / 4)
update t set b = b + r.n from r where t.a = r.x % ROWS;
select printf('%.6f %d', (julianday('now') - (select began from clock)) * 86400.0,
  (select b * 7 + c from seen) + (select sum(b) from t where a % 64 = 0));
