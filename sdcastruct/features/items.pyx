"""Items as python-crfsuite takes them, read into numbered attributes and values.

An item is a collection of names or a dict. What items say::

    ["a", "b"]           a = 1, b = 1
    {"a": 2.5}           a = 2.5
    {"a": True}          a = 1, and False is 0
    {"a": "x"}           a:x = 1
    {"a": {"b": 2.5}}    a:b = 2.5, to any depth
    {"a": ["x", "y"]}    a:x = 1, a:y = 1

An attribute that an item names twice adds up. Names are put together in one buffer and looked up
there: no string is made for an attribute that is known.
"""

import reprlib
from collections.abc import Mapping

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from sdcastruct.features.vocabulary cimport Vocabulary

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

cdef Py_ssize_t DEEPEST = 100


def read(X, Vocabulary vocabulary, bint learn):
    """Read sequences of items.

    Parameters
    ----------
    X : list of sequences of items
    vocabulary : Vocabulary
    learn : bool
        Whether new attributes are added to the vocabulary; otherwise they are left out.

    Returns
    -------
    codes, values : int32 and float64 arrays of shape (n_entries,)
        The numbers and values of the attributes of all items, in the order of reading.
    indptr : int64 array of shape (n_items + 1,)
        Entries of item t are indptr[t], ..., indptr[t+1] - 1.
    lengths : int64 array of shape (n_sequences,)
        Numbers of items.
    """
    cdef Py_ssize_t i, n_items = 0
    sequences = [_sequence(i, sequence) for i, sequence in enumerate(X)]
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    indptr = np.zeros(lengths.sum() + 1, np.int64)
    cdef int64_t[::1] ends = indptr[1:]
    cdef Reader reader = Reader(vocabulary, learn, _n_names(sequences))
    for i, sequence in enumerate(sequences):
        reader.i = i
        for reader.t, item in enumerate(sequence):
            reader.read_item(item)
            ends[n_items] = reader.n_entries
            n_items += 1
    return (*reader.entries(), indptr, lengths)


def keep_columns(const int32_t[::1] columns, int32_t[::1] codes, double[::1] values,
                 int64_t[::1] indptr):
    """Replace codes by columns[code] in place, without the entries where that is negative.

    The arrays keep their lengths; indptr says which entries are left.
    """
    cdef Py_ssize_t row, entry, start = 0, n_kept = 0
    cdef int32_t column
    for row in range(indptr.shape[0] - 1):
        for entry in range(start, indptr[row + 1]):
            column = columns[codes[entry]]
            if column >= 0:
                codes[n_kept] = column
                values[n_kept] = values[entry]
                n_kept += 1
        start = indptr[row + 1]
        indptr[row + 1] = n_kept


def occurrences(const int32_t[::1] codes, Py_ssize_t n_attributes):
    """Return how often each attribute occurs; np.bincount would copy the codes to int64."""
    counts = np.zeros(n_attributes, np.int64)
    cdef int64_t[::1] view = counts
    cdef Py_ssize_t entry
    for entry in range(codes.shape[0]):
        view[codes[entry]] += 1
    return counts


def _sequence(i, sequence):
    """Return a sequence as a list or tuple of at least one item."""
    if isinstance(sequence, (str, bytes, Mapping, set, frozenset)):
        raise TypeError(f"X[{i}] is {_found(sequence)}, expected a list of items")
    if not isinstance(sequence, (list, tuple)):
        try:
            sequence = list(sequence)
        except TypeError:
            raise TypeError(f"X[{i}] is {_found(sequence)}, expected a list of items") from None
    if not sequence:
        raise ValueError(f"X[{i}] is empty, expected at least one item")
    return sequence


def _found(value):
    """Return how a message names a value that it did not expect."""
    return f"{reprlib.repr(value)} of type {type(value).__name__}"


cdef Py_ssize_t _n_names(list sequences) except -1:
    """Return the number of names at the top of all items: of entries, if nothing is nested."""
    cdef Py_ssize_t n = 0
    for sequence in sequences:
        for item in sequence:
            if isinstance(item, (dict, list, tuple, set, frozenset)):
                n += len(item)
    return n


cdef class Reader:
    """Reads items one after the other and holds what they say.

    Fields
    ------
    i, t : position of the item, for messages
    path : keys that lead to the dict or list being read
    text : the name being put together; nested names follow their prefix
    """

    cdef Vocabulary vocabulary
    cdef bint learn
    cdef Py_ssize_t n_entries, i, t, capacity
    cdef object codes, values
    cdef int32_t[::1] code_view
    cdef double[::1] value_view
    cdef list path
    cdef char *text

    def __cinit__(self, Vocabulary vocabulary, bint learn, Py_ssize_t n_names):
        self.vocabulary = vocabulary
        self.learn = learn
        self.path = []
        self.codes = self.code_view = np.empty(n_names, np.int32)
        self.values = self.value_view = np.empty(n_names, np.float64)

    def __dealloc__(self):
        PyMem_Free(self.text)

    cdef entries(self):
        return self.codes[:self.n_entries], self.values[:self.n_entries]

    cdef int read_item(self, item) except -1:
        if isinstance(item, dict):
            return self.read_dict(<dict> item, 0)
        if isinstance(item, (list, tuple, set, frozenset)):
            return self.read_names(item, 0)
        if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype.kind in "USO":
            return self.read_names(item.tolist(), 0)
        raise TypeError(
            f"{self.place()} is {_found(item)}, expected a list of attribute names or a dict"
        )

    cdef int read_dict(self, dict item, Py_ssize_t prefix) except -1:
        """Read {name: value, ...} behind the first bytes of text, which end in a colon."""
        cdef Py_ssize_t length
        for key, value in item.items():
            length = self.write(key, prefix)
            if isinstance(value, (str, bytes)):
                self.text[length] = b":"
                length = self.write(value, length + 1)
                self.add(length, 1.0)
            elif isinstance(value, (dict, list, tuple, set, frozenset)):
                self.read_nested(key, value, length)
            else:
                self.add(length, self.number(key, value))
        return 0

    cdef int read_names(self, names, Py_ssize_t prefix) except -1:
        """Read [name, ...] behind the first bytes of text."""
        for name in names:
            self.add(self.write(name, prefix), 1.0)
        return 0

    cdef int read_nested(self, key, value, Py_ssize_t length) except -1:
        self.path.append(key)
        if len(self.path) > DEEPEST:
            raise ValueError(f"X[{self.i}][{self.t}] is nested more than {DEEPEST} levels deep")
        self.text[length] = b":"
        if isinstance(value, dict):
            self.read_dict(<dict> value, length + 1)
        else:
            self.read_names(value, length + 1)
        self.path.pop()
        return 0

    cdef double number(self, key, value) except? -1:
        cdef double number
        try:
            number = value
        except OverflowError:
            number = float("inf")
        except (TypeError, ValueError):
            raise TypeError(
                f"{self.place()}[{key!r}] is {_found(value)}, "
                "expected a number, a string, a dict or a list of strings"
            ) from None
        if not isfinite(number):
            raise ValueError(
                f"{self.place()}[{key!r}] is {reprlib.repr(value)}, expected a finite number"
            )
        return number

    cdef Py_ssize_t write(self, name, Py_ssize_t at) except -1:
        """Write a name to text[at:] and return its end; text has room for a colon behind it."""
        cdef const char *source
        cdef Py_ssize_t length
        if isinstance(name, str) and PyUnicode_IS_ASCII(name):
            source = <const char *> PyUnicode_1BYTE_DATA(name)
            length = PyUnicode_GET_LENGTH(name)
        else:
            name = self.encoded(name)
            source = <bytes> name
            length = len(<bytes> name)
        if at + length + 1 > self.capacity:
            self.enlarge(2 * (at + length) + 64)
        memcpy(self.text + at, source, length)
        return at + length

    cdef bytes encoded(self, name):
        """Return a name in UTF-8; for str the encoding would stay with the object if asked in C."""
        try:
            if isinstance(name, str):
                return (<str> name).encode()
            if isinstance(name, bytes):
                (<bytes> name).decode()
                return name
        except UnicodeError as error:
            raise ValueError(f"{self.place()} has the name {name!r}: {error}") from None
        raise TypeError(f"{self.place()} has {_found(name)} as a name, expected a string")

    cdef int enlarge(self, Py_ssize_t capacity) except -1:
        cdef char *text = <char *> PyMem_Realloc(self.text, capacity)
        if text == NULL:
            raise MemoryError(f"no {capacity} bytes for the name of an attribute")
        self.text = text
        self.capacity = capacity
        return 0

    cdef int add(self, Py_ssize_t length, double value) except -1:
        """Add an entry for the attribute text[:length]."""
        cdef int32_t code
        if self.learn:
            code = self.vocabulary.number(self.text, length)
        else:
            code = self.vocabulary.find(self.text, length)
            if code < 0:
                return 0
        if self.n_entries == self.code_view.shape[0]:
            self.reserve(3 * self.n_entries // 2 + 64)
        self.code_view[self.n_entries] = code
        self.value_view[self.n_entries] = value
        self.n_entries += 1
        return 0

    cdef int reserve(self, Py_ssize_t n_entries) except -1:
        self.codes = self.code_view = np.resize(self.codes, n_entries)
        self.values = self.value_view = np.resize(self.values, n_entries)
        return 0

    cdef place(self):
        keys = "".join(f"[{key!r}]" for key in self.path)
        return f"X[{self.i}][{self.t}]{keys}"
