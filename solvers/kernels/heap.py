"""A binary heap of keys with numbers: the queue of events of simulations, and the order of gains
and losses in fair goodput.

Entry 0 is the earliest event; of events at one moment the smaller number goes first. The heap is
the first `size` entries of two arrays that are long enough.
"""

from specopt.solvers.kernels.kernel import helper, inlined


@inlined
def before(moments, numbers, k, moment, number):
    """Return whether entry k goes before an event."""
    return moments[k] < moment or (moments[k] == moment and numbers[k] < number)


@helper
def push(moments, numbers, size, moment, number):
    """Add an event; return the new size."""
    k = size
    while k > 0:
        parent = (k - 1) // 2
        if before(moments, numbers, parent, moment, number):
            break
        moments[k] = moments[parent]
        numbers[k] = numbers[parent]
        k = parent
    moments[k] = moment
    numbers[k] = number
    return size + 1


@helper
def pop(moments, numbers, size):
    """Remove the earliest event; return the new size."""
    size -= 1
    place(moments, numbers, size, 0, moments[size], numbers[size])
    return size


@helper
def place(moments, numbers, size, k, moment, number):
    """Put an event at entry k, or below: the heaps under that entry are in order, what it held is
    forgotten.
    """
    while 2 * k + 1 < size:
        child = 2 * k + 1
        other = child + 1
        # `before` written out: numbers are read at a tie alone, which spares a simulation a quarter
        # of its time
        if other < size and (
            moments[other] < moments[child]
            or (moments[other] == moments[child] and numbers[other] < numbers[child])
        ):
            child = other
        if moment < moments[child] or (moment == moments[child] and number < numbers[child]):
            break
        moments[k] = moments[child]
        numbers[k] = numbers[child]
        k = child
    moments[k] = moment
    numbers[k] = number


@helper
def heapify(moments, numbers, size):
    """Bring events of any order into the order of a heap."""
    for k in range(size // 2 - 1, -1, -1):
        place(moments, numbers, size, k, moments[k], numbers[k])
