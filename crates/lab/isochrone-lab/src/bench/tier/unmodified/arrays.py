# Passes over three arrays of values with few digits, as a NumPy program makes them: python3 arrays.py BYTES. Seconds
# without the start of the interpreter, and a digest.
import sys
import time

import numpy as np


def digest(array):
    rows = array[: len(array) // 4096 * 4096].view(np.uint64).reshape(-1, 4096)
    sums = rows @ np.arange(1, 8193, 2, dtype=np.uint64)
    return int(np.sum(sums * np.arange(1, 2 * len(sums), 2, dtype=np.uint64), dtype=np.uint64))


n = int(sys.argv[1]) // 24
begin = time.perf_counter()
a = np.arange(n, dtype=np.float64)
np.remainder(a, 1000, out=a)
a *= 0.25
b = a[::-1].copy()
c = np.empty_like(a)
for step in range(6):
    np.multiply(b, 0.5, out=c)
    np.add(a, c, out=c)
    a, b, c = c, a, b
found = digest(a) ^ digest(b)
print(f"{time.perf_counter() - begin:.6f} {found:016x}")
