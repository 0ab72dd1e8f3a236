# SPDX-License-Identifier: BSD-3-Clause
"""Reads snapshots of `halocline run --snapshot-every` into numpy, for notebooks and scripts of your own.

    import sys; sys.path.insert(0, "results")
    import vti
    snapshot = vti.read("fields-00000010.vti")
    snapshot.fields["lnrho"][z, y, x]

Needs numpy alone. results/pictures.md describes the files."""

import dataclasses
import math
import xml.etree.ElementTree

import numpy
from records import BadInput

BEGIN = b'<AppendedData encoding="raw">\n_'
MOST_HEAD = 64 << 20  # largest part in front of the first field; bytes
CHUNK = 1 << 20
HINT = "give what halocline run wrote by --snapshot-every"


@dataclasses.dataclass
class Snapshot:
    """Holds the fields at one time. `fields` has an array for each name, indexed by z, y, x. Its values are read
    from the file when they are used."""

    step: int
    time: float
    spacing: tuple[float, float, float]  # distances of points along x, y, z
    fields: dict[str, numpy.ndarray]


def read(path):
    """Returns the snapshot in a file. Raises records.BadInput if it is none, or if it is cut off."""
    try:
        with open(path, "rb") as file:
            text = file.read(CHUNK)
            while BEGIN not in text and len(text) < MOST_HEAD and (more := file.read(CHUNK)):
                text += more
        head, found, _ = text.partition(BEGIN)
        if not found:
            raise ValueError("it has no fields as raw bytes")
        root = xml.etree.ElementTree.fromstring(head + b"</VTKFile>")
        return snapshot_of(root, path, len(head) + len(BEGIN))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): {HINT}") from error
    except (ValueError, LookupError, TypeError, AttributeError, xml.etree.ElementTree.ParseError) as error:
        raise BadInput(f"{path} is no snapshot ({error}): {HINT}") from error


def snapshot_of(root, path, begin):
    """Returns the snapshot that the XML describes. Its fields are counted from byte `begin` on."""
    image = root.find("ImageData")
    bounds = [int(word) for word in image.get("WholeExtent").split()]
    shape = tuple(high - low + 1 for low, high in zip(bounds[4::-2], bounds[5::-2]))
    order = {"LittleEndian": "<", "BigEndian": ">"}[root.get("byte_order")]
    values = {one.get("Name"): one.text for one in image.find("FieldData")}
    fields = {}
    for one in image.find("Piece/PointData"):
        kind = numpy.dtype({"Float32": "f4", "Float64": "f8"}[one.get("type")]).newbyteorder(order)
        at = begin + int(one.get("offset"))
        (length,) = numpy.fromfile(path, f"{order}u8", 1, offset=at)
        if length != math.prod(shape) * kind.itemsize:
            raise ValueError(f"field {one.get('Name')} has {length} bytes")
        fields[one.get("Name")] = numpy.memmap(path, kind, "r", at + 8, shape)
    spacing = tuple(float(word) for word in image.get("Spacing").split())
    return Snapshot(int(values["step"]), float(values["TimeValue"]), spacing, fields)
