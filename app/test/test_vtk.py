# SPDX-License-Identifier: BSD-3-Clause
"""Opens snapshots and slices as their users do: with VTK itself, with results/vti.py, with results/show.py, and as
pictures. Exit code 77: jobs/local/test.sh has not installed VTK."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])
PYTHON = SOURCE / ".deps/vtk/bin/python3"
try:
    import vtkmodules  # noqa: F401
except ImportError:
    if not PYTHON.exists():
        print("no .deps/vtk: jobs/local/test.sh installs it")
        sys.exit(77)
    os.execv(PYTHON, [PYTHON, *sys.argv])

import numpy  # noqa: E402
from PIL import Image  # noqa: E402
from vtkmodules.util.numpy_support import vtk_to_numpy  # noqa: E402
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline  # noqa: E402
from vtkmodules.vtkIOXdmf2 import vtkXdmfReader  # noqa: E402
from vtkmodules.vtkIOXML import vtkXMLImageDataReader  # noqa: E402

sys.path.insert(0, str(SOURCE / "results"))
import vti  # noqa: E402
from halocline_program import MPIEXEC, own_session  # noqa: E402

SIZE = (23, 9, 6)
SPACING = (0.5, 0.25, 2.0)
SHOW = SOURCE / "results/show.py"


def expected(step, field, kind=float):
    """Returns what pictures_tool.cpp writes, by z, y, x."""
    z, y, x = numpy.indices(SIZE[::-1])
    return (x + 100 * y + 10000 * z - 5000 * field + 0.5 * step).astype(kind)


def fields_of(image):
    """Returns the fields of VTK's image data by name, by z, y, x."""
    data = image.GetPointData()
    return {
        data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)).reshape(image.GetDimensions()[::-1])
        for i in range(data.GetNumberOfArrays())
    }


class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hl")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, *arguments, ranks=4):
        """Writes pictures of 4 steps."""
        tool = os.environ["HALOCLINE_PICTURES_TOOL"]
        flags = ["run", "--fields", "3", "--steps", "4", "--radius", "3", *arguments, "--global", *map(str, SIZE)]
        with own_session() as environment:
            command = [MPIEXEC, "-n", str(ranks), tool, *flags]
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def show(self, *arguments):
        return subprocess.run([SHOW, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)


class Snapshots(Pictures):
    def test_vtk_reads_the_numbers(self):
        for layout, element, kind in (("soa", "double", "f8"), ("aos", "float", "f4")):
            with self.subTest(layout=layout):
                self.write("--snapshot-every", "2", "--layout", layout, "--element", element)
                reader = vtkXMLImageDataReader()
                reader.SetFileName(str(self.folder / "fields-00000004.vti"))
                reader.Update()
                image = reader.GetOutput()
                self.assertEqual((image.GetDimensions(), image.GetSpacing()), (SIZE, SPACING))
                fields = fields_of(image)
                self.assertEqual(list(fields), ["field0", "field1", "field2"])
                for number, values in enumerate(fields.values()):
                    self.assertEqual(values.dtype, kind)
                    numpy.testing.assert_array_equal(values, expected(4, number, kind))
                self.assertEqual(image.GetFieldData().GetArray("TimeValue").GetTuple1(0), 0.5)
                self.assertEqual(image.GetFieldData().GetArray("step").GetTuple1(0), 4)

    def test_vtk_reads_the_series_by_xdmf(self):
        self.write("--snapshot-every", "1", "--snapshot-fields", "field2,field1")
        reader = vtkXdmfReader()
        reader.SetFileName(str(self.folder / "fields.xmf"))
        reader.UpdateInformation()
        times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
        self.assertEqual(times, (0.125, 0.25, 0.375, 0.5))
        for step, time in enumerate(times, 1):
            reader.UpdateTimeStep(time)
            image = reader.GetOutputDataObject(0)
            self.assertEqual((image.GetDimensions(), image.GetSpacing()), (SIZE, SPACING))
            fields = fields_of(image)
            self.assertEqual(set(fields), {"field1", "field2"})
            for number in (1, 2):
                numpy.testing.assert_array_equal(fields[f"field{number}"], expected(step, number))

    def test_the_list_for_paraview_names_every_file(self):
        self.write("--snapshot-every", "1")
        entries = list(xml.etree.ElementTree.parse(self.folder / "fields.pvd").iter("DataSet"))
        self.assertEqual([float(entry.get("timestep")) for entry in entries], [0.125, 0.25, 0.375, 0.5])
        for entry in entries:
            self.assertTrue((self.folder / entry.get("file")).exists())

    def test_numpy_reads_the_numbers(self):
        self.write("--snapshot-every", "3", "--element", "float", "--layout", "aos")
        snapshot = vti.read(self.folder / "fields-00000003.vti")
        self.assertEqual((snapshot.step, snapshot.time, snapshot.spacing), (3, 0.375, SPACING))
        for number, values in enumerate(snapshot.fields.values()):
            numpy.testing.assert_array_equal(values, expected(3, number, "f4"))


class Slices(Pictures):
    def assert_picture(self, name, plane, **texts):
        """Checks size, colours and texts. `plane` has rows from bottom to top."""
        image = Image.open(self.folder / name)
        for key, value in texts.items():
            self.assertEqual(image.text[key], value)
        low, high = float(image.text["min"]), float(image.text["max"])
        self.assertEqual((low, high), (plane.min(), plane.max()))
        scale = -(-512 // max(plane.shape))
        self.assertEqual(image.size, (scale * plane.shape[1], scale * plane.shape[0]))
        numbers = numpy.asarray(image).reshape(plane.shape[0], scale, plane.shape[1], scale)
        self.assertTrue((numbers == numbers[:, :1, :, :1]).all())
        if low < 0 < high:
            low, high = -max(-low, high), max(-low, high)
        exact = (plane[::-1] - low) / (high - low) * 254
        self.assertLessEqual(abs(numbers[:, 0, :, 0] - exact).max(), 0.51)
        return image

    def test_pictures_have_the_colours_of_their_numbers(self):
        self.write("--slice-every", "4", "--slice-at", "0.5")
        whole = expected(4, 0)
        image = self.assert_picture("slice-field0-z-00000004.png", whole[3], step="4", time="0.5", axis="z", index="3", field="field0")
        self.assertEqual(image.getpalette()[:3], [68, 1, 84])
        self.assert_picture("slice-field1-z-00000004.png", expected(4, 1)[3])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), [f"slice-field{i}-z-00000004.png" for i in range(3)])

    def test_axes(self):
        for axis, at, plane in (("x", "1", expected(4, 2)[:, :, 22]), ("y", "0", expected(4, 2)[:, 0]), ("z", "0.2", expected(4, 2)[1])):
            self.write("--slice-every", "2", "--slice-fields", "field2", "--slice-axis", axis, "--slice-at", at, "--layout", "aos", "--element", "float")
            self.assert_picture(f"slice-field2-{axis}-00000004.png", plane)


class Show(Pictures):
    def test_picture_and_animation(self):
        self.write("--snapshot-every", "1")
        files = sorted(path.name for path in self.folder.glob("*.vti"))
        done = self.show(files[0], "--field", "field1", "--axis", "y", "--at", "1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "field1-y.png\n", ""))
        with Image.open(self.folder / "field1-y.png") as image:
            self.assertGreater(image.size[0], 500)
        done = self.show(*reversed(files), "-o", "all.gif")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "all.gif\n", ""))
        with Image.open(self.folder / "all.gif") as image:
            self.assertEqual(image.n_frames, 4)
        self.assertFalse(list(self.folder.glob("*.part*")))

    def test_what_cannot_be_drawn(self):
        self.write("--snapshot-every", "2")
        good = "fields-00000002.vti"
        content = (self.folder / good).read_bytes()
        (self.folder / "cut.vti").write_bytes(content[: len(content) // 2])
        (self.folder / "text.vti").write_text("no snapshot", encoding="utf-8")
        for arguments, what in (
            (["none.vti"], "none.vti cannot be read (No such file"),
            (["text.vti"], "text.vti is no snapshot (it has no fields as raw bytes): give what halocline run wrote"),
            (["cut.vti", "--field", "field2"], "cut.vti is no snapshot ("),
            ([good, "--field", "ux"], "has no field ux: give --field one of field0, field1, field2"),
            ([good, "-o", "x.mp3"], "x.mp3 cannot be a picture: give -o a name that ends in ."),
            ([good, "fields-00000004.vti", "-o", "x.png"], "x.png cannot be an animation: give -o a name that ends in .gif"),
            ([good, "-o", "none/x.png"], "cannot be written (No such file or directory): give another place with -o"),
        ):
            with self.subTest(arguments=arguments):
                done = self.show(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(what, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_help_fits_a_screen(self):
        done = self.show("--help")
        self.assertLessEqual(done.stdout.count("\n"), 40)


if __name__ == "__main__":
    unittest.main()
