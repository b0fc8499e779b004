"""A binary min-heap of (moment, number) pairs.

A pair is called an event, because simulations use the heap as an event queue. Other kernels use it
to order gains and losses. Entry 0 is the event with the smallest moment. If several events have the
same moment, the event with the smallest number comes first. The heap occupies the first `size`
entries of two arrays, which the caller allocates.
"""

from specopt.solvers.kernels.kernel import helper, inlined


@inlined
def before(moments, numbers, k, moment, number):
    """Return whether entry k comes before the event (moment, number)."""
    return moments[k] < moment or (moments[k] == moment and numbers[k] < number)


@helper
def push(moments, numbers, size, moment, number):
    """Add the event (moment, number) to the heap, and return the new size."""
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
    """Remove the earliest event from the heap, and return the new size."""
    size -= 1
    place(moments, numbers, size, 0, moments[size], numbers[size])
    return size


@helper
def place(moments, numbers, size, k, moment, number):
    """Write the event (moment, number) into entry k, and move it down until the heap order holds.

    The subtrees below entry k must already be heaps. The previous entry k is overwritten.
    """
    while 2 * k + 1 < size:
        child = 2 * k + 1
        other = child + 1
        # This repeats the code of `before`, so that numbers are read only if there is a tie. This
        # saves a quarter of the time of a simulation.
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
    """Rearrange the first `size` events, which may be in any order, into a heap."""
    for k in range(size // 2 - 1, -1, -1):
        place(moments, numbers, size, k, moments[k], numbers[k])
