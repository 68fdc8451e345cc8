"""Attribute names and their numbers, as compact as the text they are read from.

The names lie in one piece of memory as UTF-8, in order of their numbers a = 0, 1, ..., A-1. A hash
table with linear probing leads from a name to its number: a slot is (hash, a), eight bytes, so that
a name costs its text, eight bytes for its end and 12 to 24 bytes of slots. A dict of str and int
takes about 150.
"""

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, uint64_t
from libc.string cimport memcmp, memcpy

cdef Py_ssize_t FEWEST_SLOTS = 64


cdef class Vocabulary:
    """A set of attributes, numbered in the order in which they were added."""

    def __cinit__(self):
        self.text_capacity = self.ends_capacity = 1
        self.text = <char *> resized(NULL, 1)
        self.ends = <Py_ssize_t *> resized(NULL, sizeof(Py_ssize_t))
        self.ends[0] = 0
        self.rehash(FEWEST_SLOTS)

    def __dealloc__(self):
        PyMem_Free(self.text)
        PyMem_Free(self.ends)
        PyMem_Free(self.slots)

    def __len__(self):
        return self.size

    def __reduce__(self):
        return Vocabulary.from_arrays, self.to_arrays()

    @property
    def nbytes(self):
        """Bytes held: text, ends and slots."""
        return (self.text_capacity + self.ends_capacity * sizeof(Py_ssize_t)
                + self.n_slots * sizeof(Slot))

    def names(self):
        """Return the attributes as a list of str."""
        cdef Py_ssize_t a
        return [
            PyUnicode_DecodeUTF8(self.text + self.ends[a], self.ends[a + 1] - self.ends[a], NULL)
            for a in range(self.size)
        ]

    def keep(self, kept):
        """Return the vocabulary of the attributes a with kept[a], in the same order."""
        cdef const unsigned char[::1] mask = np.ascontiguousarray(kept, bool).view(np.uint8)
        cdef Vocabulary smaller = Vocabulary()
        cdef Py_ssize_t a
        if mask.shape[0] != self.size:
            raise ValueError(f"kept has length {mask.shape[0]}, expected {self.size}")
        for a in range(self.size):
            if mask[a]:
                smaller.number(self.text + self.ends[a], self.ends[a + 1] - self.ends[a])
        smaller.trim()
        return smaller

    def trim(self):
        """Give back the memory set aside for attributes to come."""
        self.text_capacity = max(self.ends[self.size], 1)
        self.text = <char *> resized(self.text, self.text_capacity)
        self.ends_capacity = self.size + 1
        self.ends = <Py_ssize_t *> resized(self.ends, self.ends_capacity * sizeof(Py_ssize_t))

    def to_arrays(self):
        """Return the text as a uint8 array and the lengths of the attributes in it, int32."""
        cdef Py_ssize_t a
        text = np.empty(self.ends[self.size], np.uint8)
        lengths = np.empty(self.size, np.int32)
        cdef unsigned char[::1] text_view = text
        cdef int32_t[::1] length_view = lengths
        if text.size:
            memcpy(&text_view[0], self.text, text.size)
        for a in range(self.size):
            length_view[a] = <int32_t> (self.ends[a + 1] - self.ends[a])
        return text, lengths

    @staticmethod
    def from_arrays(text, lengths):
        """Return the vocabulary of what `to_arrays` gave; ValueError if it cannot have."""
        encoded = np.ascontiguousarray(text, np.uint8).tobytes()
        cdef const char *names = encoded
        cdef Vocabulary vocabulary = Vocabulary()
        cdef Py_ssize_t start = 0, length
        if np.sum(lengths, dtype=np.int64) != len(encoded) or np.any(np.less(lengths, 0)):
            raise ValueError(f"lengths do not add up to the {len(encoded)} bytes of text")
        for a, length in enumerate(np.asarray(lengths).tolist()):
            PyUnicode_DecodeUTF8(names + start, length, NULL)
            if vocabulary.number(names + start, length) != a:
                name = encoded[start:start + length].decode()
                raise ValueError(f"text has the attribute {name!r} twice")
            start += length
        vocabulary.trim()
        return vocabulary

    cdef int32_t find(self, const char *name, Py_ssize_t length) noexcept nogil:
        """Return the number of an attribute, -1 if there is none of this name."""
        return self.slot_of(hash_of(name, length), name, length).code

    cdef int32_t number(self, const char *name, Py_ssize_t length) except -1:
        """Return the number of an attribute, which is added if it is new."""
        cdef uint32_t tag = hash_of(name, length)
        cdef Slot *slot = self.slot_of(tag, name, length)
        if slot.code < 0:
            if 3 * (self.size + 1) > 2 * self.n_slots:
                self.rehash(2 * self.n_slots)
                slot = self.slot_of(tag, name, length)
            self.append(name, length)
            slot.tag = tag
            slot.code = <int32_t> (self.size - 1)
        return slot.code

    cdef Slot *slot_of(self, uint32_t tag, const char *name, Py_ssize_t length) noexcept nogil:
        """Return the slot of a name, the free slot where it belongs if it is new."""
        cdef Py_ssize_t last = self.n_slots - 1, start
        cdef Py_ssize_t at = tag & last
        cdef Slot *slot = self.slots + at
        while slot.code >= 0:
            if slot.tag == tag:
                start = self.ends[slot.code]
                if (self.ends[slot.code + 1] - start == length
                        and memcmp(self.text + start, name, length) == 0):
                    break
            at = (at + 1) & last
            slot = self.slots + at
        return slot

    cdef int append(self, const char *name, Py_ssize_t length) except -1:
        cdef Py_ssize_t start = self.ends[self.size]
        if self.size == INT32_MAX or length > INT32_MAX:
            raise OverflowError("attributes and their lengths are counted in 32 bits")
        if start + length > self.text_capacity:
            self.text_capacity = (start + length) * 5 // 4 + 64
            self.text = <char *> resized(self.text, self.text_capacity)
        if self.size + 2 > self.ends_capacity:
            self.ends_capacity = self.size * 5 // 4 + 64
            self.ends = <Py_ssize_t *> resized(self.ends, self.ends_capacity * sizeof(Py_ssize_t))
        memcpy(self.text + start, name, length)
        self.size += 1
        self.ends[self.size] = start + length
        return 0

    cdef int rehash(self, Py_ssize_t n_slots) except -1:
        """Move to a table of another size; the tags tell where to."""
        cdef Slot *slots = <Slot *> resized(NULL, n_slots * sizeof(Slot))
        cdef Py_ssize_t s, at
        for s in range(n_slots):
            slots[s].code = -1
        for s in range(self.n_slots):
            if self.slots[s].code >= 0:
                at = self.slots[s].tag & (n_slots - 1)
                while slots[at].code >= 0:
                    at = (at + 1) & (n_slots - 1)
                slots[at] = self.slots[s]
        PyMem_Free(self.slots)
        self.slots = slots
        self.n_slots = n_slots
        return 0


cdef void *resized(void *memory, size_t n_bytes) except NULL:
    memory = PyMem_Realloc(memory, n_bytes)
    if memory == NULL:
        raise MemoryError(f"no {n_bytes} bytes for the attributes")
    return memory


cdef uint32_t hash_of(const char *name, Py_ssize_t length) noexcept nogil:
    """Return a hash of a name: eight bytes at a time, every step a bijection of the state."""
    cdef uint64_t state = <uint64_t> length, word
    while length >= 8:
        memcpy(&word, name, 8)
        state = mixed(state ^ word)
        name += 8
        length -= 8
    if length > 0:
        word = 0
        memcpy(&word, name, length)
        state = mixed(state ^ word)
    return <uint32_t> (state >> 32)


cdef inline uint64_t mixed(uint64_t state) noexcept nogil:
    state *= <uint64_t> 0x9E3779B97F4A7C15
    state ^= state >> 32
    return state * <uint64_t> 0xD6E8FEB86659FD93
