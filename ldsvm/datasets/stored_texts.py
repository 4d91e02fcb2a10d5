"""Texts of a column that are too many for memory: they lie in a file, one for each row, and are read some at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import mkstemp
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ldsvm.datasets.large import is_large

NUMBERS = 16  # as many of them as a text in memory takes


def are_many(texts: int, size: int) -> bool:
    """Return whether so many texts, of so many bytes, are too large for memory, and for the metadata of a file.

    Examples
    --------
    >>> are_many(1_000, 50_000), are_many(1_000_000, 50_000_000)
    (False, True)
    """
    return is_large(texts, NUMBERS) or is_large(size, 1)


class StoredTexts(Sequence[str]):
    """Texts (N,) in Arrow files, by their place. chunks: pyarrow arrays of text, none of them null.

    Examples
    --------
    >>> import pyarrow
    >>> some = StoredTexts.written([pyarrow.array(["a b", "c"]), pyarrow.array(["d"])])
    >>> len(some), some[1], some.words(np.array([2.0, 0.0])).tolist()
    (3, 'c', ['d', 'a b'])
    """

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = tuple(chunks)
        self._ends = np.cumsum([len(chunk) for chunk in self.chunks], dtype=np.int64)

    @classmethod
    def written(cls, chunks: Iterable[Any]) -> StoredTexts:
        """Write texts to a file without a name, in the folder of temporary files, and return them."""
        handle, name = mkstemp()
        os.close(handle)
        try:
            _write(Path(name), chunks)
            return cls.read(Path(name))
        finally:
            os.unlink(name)  # the map keeps it

    @classmethod
    def read(cls, file: Path) -> StoredTexts:
        """Return the texts of a file that `save` wrote."""
        import pyarrow as pa

        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        return cls(reader.get_batch(i).column(0) for i in range(reader.num_record_batches))

    def save(self, file: Path) -> None:
        """Write the texts to a file."""
        _write(file, self.chunks)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        places = range(len(self))[place]
        found: list[str] = self.words(np.atleast_1d(np.asarray(places))).tolist()
        return found if isinstance(place, slice) else found[0]

    def words(self, places: NDArray[Any]) -> NDArray[np.object_]:
        """Return the texts at these places (n,)."""
        import pyarrow as pa

        wanted = places.astype(np.int64)
        chunk_of = np.searchsorted(self._ends, wanted, side="right")
        found = np.empty(len(wanted), dtype=object)
        for i in np.unique(chunk_of):
            here = np.flatnonzero(chunk_of == i)
            chunk = self.chunks[i]
            inside = wanted[here] - (self._ends[i] - len(chunk))
            found[here] = chunk.take(pa.array(inside)).to_numpy(zero_copy_only=False)
        return found

    def content(self) -> Iterator[bytes]:
        """Yield bytes that no other texts have, for a digest."""
        import pyarrow as pa

        for chunk in self.chunks:
            words = chunk.cast(pa.binary()).to_pylist()
            yield np.array([len(word) for word in words], dtype="<i8").tobytes()
            yield b"".join(words)


def _write(file: Path, chunks: Iterable[Any]) -> None:
    import pyarrow as pa

    schema = pa.schema([("text", pa.string())])
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for chunk in chunks:
            writer.write_batch(pa.record_batch([chunk.cast(pa.string())], schema=schema))
