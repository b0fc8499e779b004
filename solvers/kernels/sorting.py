"""A stable sort by keys, which Numba compiles in a fraction of the time that NumPy's sorting
functions would require.
"""

import numpy as np

from specopt.solvers.kernels.kernel import helper

RUN = 16
"""Number of entries per run. Each run is sorted by insertion sort, and the runs are then merged."""


@helper
def sort_by(key, order):
    """Sort the indices in `order` in place by increasing key. Indices with equal keys keep their
    relative order.
    """
    n = len(order)
    for begin in range(0, n, RUN):
        for i in range(begin + 1, min(begin + RUN, n)):
            item = order[i]
            k = i
            while k > begin and key[order[k - 1]] > key[item]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = item
    left = np.empty(n, np.int64)
    width = RUN
    while width < n:
        for begin in range(0, n - width, 2 * width):
            for i in range(width):
                left[i] = order[begin + i]
            a, b, end = 0, begin + width, min(begin + 2 * width, n)
            for k in range(begin, end):
                if a < width and (b == end or not key[order[b]] < key[left[a]]):
                    order[k] = left[a]
                    a += 1
                elif a < width:
                    order[k] = order[b]
                    b += 1
                else:
                    break
        width *= 2
