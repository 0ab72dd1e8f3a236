# SPDX-License-Identifier: BSD-3-Clause
"""Tests the command line and the config file: input, output, and one clear line for every mistake."""
import contextlib
import csv
import json
import os
import pathlib
import re
import stat
import struct
import tempfile
import unittest
import unittest.mock

from halocline_program import halocline, options, several

SOURCE = pathlib.Path(os.environ["HALOCLINE_SOURCE"])

# A few of the mistakes in bad_input_test.cpp, one for each way to the message: a text that the message must contain, the
# config file and the command line.
BAD_INPUT = [
    ("did you mean radius?", "raduis = 3", ["run", "--config", "bad.toml", "--output", "out", "--csv", "csv"]),
    ("more than 8192 bytes", "a." * 50000 + "a = 1", ["compare", "--config", "bad.toml"]),
    ("subcommand", None, []),
    ("did you mean --fields?", None, ["run", "--fieldz", "3"]),
    (r"\ufffd", None, ["inspect", os.fsdecode(b"\xff")]),
    ("displacements cannot be read", None, ["inspect", "--displacements", "/dev/zero"]),
    ("ranks per node do not fit", None, ["info", "--ranks-per-node", "1,2"]),
]

# All flags that a config file may hold, with values that are not their defaults.
NOT_DEFAULT = """
global = [23, 19, 17]
decomposition = [1, 1, 1]
reorder = "node"
ranks-per-node = [3, 5]
radius = [4, 3, 5]
fields = 5
layout = "aos"
element = "float"
periodic = [true, false, true]
boundary = ["exact", "symmetric", "antisymmetric", "fixed", "exact", "exact"]
physics = "mhd"
mhd.spacing = 2.5
mhd.dt = 3.5
mhd.initial = "random"
mhd.amplitude = 4.5
mhd.shell-radius = 0.5
mhd.shell-width = 0.1
mhd.entropy = "no"
mhd.magnetic = "no"
mhd.upwind = "yes"
mhd.shock = 0.25
mhd.gamma = 5.5
mhd.cp = 6.5
mhd.cs0 = 7.5
mhd.lnrho0 = 8.5
mhd.t0 = 9.5
mhd.mu0 = 10.5
mhd.nu = 11.5
mhd.zeta = 12.5
mhd.eta = 13.5
mhd.conduction = 14.5
mhd.b0x = 15.5
mhd.b0y = 16.5
mhd.b0z = 17.5
mhd.forcing = 18.5
mhd.forcing-k-min = 1.5
mhd.forcing-k-max = 2.5
mhd.forcing-helicity = 0.5
mhd.astaroth-bulk = "yes"
force-dt = true
stencil = "heat9"
steps = 7
stages = 3
wide = 4
variants = ["zero-copy", "mpi-gather"]
order = ["round-robin"]
sizes = [5, 1000]
root = 1
overlap = true
progress = 3
memory = "device"
pad = "64"
pages = "small"
gpu-aware-mpi = "no"
methods = ["vendor-pack", "alltoallv"]
describe = "struct"
packer = "kokkos"
shape = ["axes", "direct"]
neighbors = "18"
messages = "region"
chunk-bytes = 4096
iterations = 5
warmup = 1
max-seconds = 2.5
nodes = [3, 70]
traces = "t"
model = "m.json"
force-model = true
threads = 1
seed = 9223372036854775807
output-folder = "out"
series-every = 3
checkpoint-every = 4
restart = "here"
snapshot-every = 5
snapshot-fields = ["ux", "lnrho"]
slice-every = 6
slice-fields = ["s"]
slice-axis = "y"
slice-at = 0.25
output = "a # b \\"c\\".jsonl"   # a comment
csv = "d.csv"
plot = "e.svg"
displacements = "list.i64"
typemap = "map"
quiet = true
json = true
verbose = true
emit = "fortran"
dry-run = true
"""

SUBCOMMANDS = ("run", "compare", "calibrate", "gather", "predict", "inspect", "info")
TINY_RUN = ["run", "--quiet", "--local", "8", "8", "8", "--steps", "1", "--fields", "1"]


class InDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def halocline(self, *arguments, **options):
        return halocline(*arguments, cwd=self.directory, **options)

    def write(self, name, text):
        (self.directory / name).write_text(text, encoding="utf-8")
        return name

    def assert_refused(self, outcome, names, code=2):
        self.assertEqual(outcome.code, code, outcome.stderr)
        self.assertEqual(len(outcome.ours), 1, outcome.stderr)
        self.assertIn(names, outcome.ours[0])
        self.assertRegex(outcome.ours[0], r"^halocline: .+ \(.+\): .+$")
        self.assertEqual(outcome.stdout, "")


class BadInput(InDirectory):
    def assert_all_refused(self, cases):
        """Runs cases (text that the message must contain, config file or None, arguments) and checks that each is
        refused. Each runs on one rank, the first case of each text also on two, in a directory of its own."""

        def run(case):
            number, ranks, (_, file, arguments) = case
            directory = self.directory / f"{number}-{ranks}"
            directory.mkdir()
            if file is not None:
                (directory / "bad.toml").write_text(file + "\n", encoding="utf-8")
            outcome = halocline(*arguments, ranks=ranks, cwd=directory)
            return outcome, [path.name for path in directory.iterdir()]

        names = [case[0] for case in cases]
        runs = [(number, 1, case) for number, case in enumerate(cases)]
        runs += [(number, 2, case) for number, case in enumerate(cases) if names.index(case[0]) == number]
        for (_, ranks, (thing, file, arguments)), (outcome, left) in several(run, runs):
            with self.subTest(file=file, arguments=arguments, ranks=ranks):
                self.assert_refused(outcome, thing)
                self.assertEqual(left, [] if file is None else ["bad.toml"])

    def test_the_program_refuses(self):
        self.assert_all_refused(BAD_INPUT)

    def test_output_that_is_a_link_to_nothing(self):
        os.symlink("nowhere", self.directory / "dangling")
        os.symlink("loop", self.directory / "loop")
        for flag in ("output", "csv"):
            outcome = self.halocline(*TINY_RUN, "--" + flag, "dangling")
            self.assert_refused(outcome, f"{flag} cannot be written (dangling: is a symbolic link to a file that does not exist)")
            self.assert_refused(self.halocline(*TINY_RUN, "--" + flag, "loop"), "Too many levels of symbolic links")
        self.assertFalse((self.directory / "nowhere").exists())

    def test_output_that_cannot_be_written(self):
        foreign = self.directory / "foreign.csv"
        foreign.write_text("x,y\n1,2\n", encoding="utf-8")
        flags = [("output", ["missing/out"]), ("output", ["."]), ("csv", ["missing/out"]), ("csv", [foreign]),
                 ("output", ["one", "--csv", "./one"])]
        self.assert_all_refused([(flag, None, TINY_RUN + ["--" + flag] + paths) for flag, paths in flags])
        self.assertEqual(foreign.read_text(encoding="utf-8"), "x,y\n1,2\n")

    @unittest.skipIf(not hasattr(os, "geteuid") or os.geteuid() == 0, "root may write everywhere")
    def test_output_without_permission(self):
        self.directory.chmod(0o500)
        self.addCleanup(self.directory.chmod, 0o700)
        self.assert_refused(self.halocline(*TINY_RUN, "--output", "out"), "output")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        for ranks in (1, 2):
            self.write("out", "before\n")
            outcome = self.halocline(*TINY_RUN, "--output", "out", "--csv", "/dev/full", ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.stderr)
            self.assertEqual(len(outcome.ours), 1, outcome.stderr)
            self.assertIn("/dev/full", outcome.ours[0])
            self.assertEqual((self.directory / "out").read_text(), "before\n")
            outcome = self.halocline(*TINY_RUN, "--output", "/dev/full", "--csv", "new.csv", ranks=ranks)
            self.assertEqual(outcome.code, 3, outcome.stderr)
            self.assertFalse((self.directory / "new.csv").exists())


class EffectiveConfig(InDirectory):
    def setUp(self):
        super().setUp()
        (self.directory / "here").mkdir()
        description = {"format": "halocline-checkpoint/1", "physics": "heat", "step": 0, "global": [1, 1, 1], "element": "float", "fields": []}
        self.write("here/checkpoint.json", json.dumps(description))

    def print_config(self, *arguments, **options):
        outcome = self.halocline(*arguments, "--print-config", **options)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return outcome.stdout

    def keys(self, text):
        return [line.split(" = ")[0] for line in text.splitlines() if " = " in line]

    def not_default(self, subcommand):
        """Returns the lines of NOT_DEFAULT whose keys a subcommand uses."""
        used = {option["flag"] for option in options() if subcommand in option["used_by"]}
        return "".join(line + "\n" for line in NOT_DEFAULT.splitlines() if line.split(" = ")[0] in used)

    def test_reads_back(self):
        for subcommand, ranks in ((subcommand, ranks) for subcommand in SUBCOMMANDS for ranks in (1, 2)):
            given = self.write("given.toml", self.not_default(subcommand))
            printed = self.print_config(subcommand, "--config", given, ranks=ranks)
            self.assertEqual(self.print_config(subcommand, "--config", self.write("printed.toml", printed), ranks=ranks), printed)

    def test_holds_what_was_given(self):
        for subcommand in SUBCOMMANDS:
            lines = self.not_default(subcommand)
            printed = self.print_config(subcommand, "--config", self.write("given.toml", lines))
            given = [line.split("   #")[0].replace(", ", ",") for line in lines.splitlines()]
            self.assertEqual(sorted(printed.splitlines()[1:]), sorted(given))

    def test_sections_are_for_their_subcommand(self):
        name = self.write("c.toml", "local = [8, 8, 8]\nradius = 2\n[run]\nradius = 1\nsteps = 3\n[compare]\nglobal = [9, 9, 9]\n")
        printed = self.print_config("run", "--config", name)
        for line in ("local = [8,8,8]", "radius = 1", "steps = 3"):
            self.assertIn(line + "\n", printed)
        printed = self.print_config("compare", "--config", name)
        for line in ("global = [9,9,9]", "radius = 2"):
            self.assertIn(line + "\n", printed)
        self.assertNotIn("local", printed)

    def test_knows_all_flags_of_the_help_text(self):
        everywhere = set(self.keys(NOT_DEFAULT))
        self.assertEqual({option["flag"] for option in options()}, everywhere | {"local", "config", "heat.diffusion"})

    def test_flags_override_the_file(self):
        name = self.write("c.toml", 'local = [8, 8, 8]\nradius = 2\nmethods = ["alltoallv"]\nperiodic = false\n')
        printed = self.print_config("run", "--config", name, "--radius", "1", "--methods", "vendor-pack,alltoallv",
                                    "--periodic", "true", "--quiet")
        for line in ("local = [8,8,8]", "radius = 1", 'methods = ["vendor-pack","alltoallv"]', "periodic = true", "quiet = true"):
            self.assertIn(line + "\n", printed)

    def test_a_name_that_is_a_number_may_be_written_as_one(self):
        printed = self.print_config("run", "--config", self.write("c.toml", "neighbors = 18\n"))
        self.assertIn('neighbors = "18"\n', printed)
        self.assertEqual(self.print_config("run", "--neighbors", "18"), printed)

    def test_local_and_global_replace_each_other(self):
        name = self.write("c.toml", "local = [8, 8, 8]\n")
        printed = self.print_config("run", "--config", name, "--global", "9", "9", "9")
        self.assertIn("global = [9,9,9]\n", printed)
        self.assertNotIn("local", printed)
        name = self.write("c.toml", "global = [8, 8, 8]\n")
        printed = self.print_config("run", "--local", "9,9,9", "--config", name)
        self.assertIn("local = [9,9,9]\n", printed)
        self.assertNotIn("global", printed)

    def test_one_number_of_ranks_per_node_is_not_a_list(self):
        for words in (("2",), ("2", "--radius", "1")):
            self.assertIn("ranks-per-node = 2\n", self.print_config("run", "--ranks-per-node", *words))
        name = self.write("c.toml", "ranks-per-node = [2]\n")
        self.assertIn("ranks-per-node = 2\n", self.print_config("run", "--config", name))

    def test_order_of_flags_does_not_matter(self):
        expected = self.print_config("run", "--radius", "2", "--local", "8", "8", "8")
        self.assertEqual(self.print_config("run", "--local", "8,8,8", "--radius=2"), expected)

    def test_shipped_configs_are_read(self):
        names = sorted((SOURCE / "configs").glob("*.toml"))
        self.assertTrue(names)
        for name in names:
            self.assertTrue(name.read_text(encoding="utf-8").startswith("# "), f"{name} says what it serves")
            for subcommand in ("gather",) if name.name.startswith("gather") else ("run", "compare"):
                self.print_config(subcommand, "--config", name)


class Help(InDirectory):
    def help(self, *words, columns=80):
        with unittest.mock.patch.dict(os.environ, COLUMNS=str(columns)):
            outcome = self.halocline(*words)
        self.assertEqual((outcome.code, outcome.stderr), (0, ""))
        return outcome.stdout

    def test_fits_a_terminal(self):
        for subcommand, columns in ((subcommand, columns) for subcommand in SUBCOMMANDS for columns in (80, 100)):
            lines = self.help(subcommand, "--help", columns=columns).splitlines()
            self.assertLessEqual(len(lines), 60, subcommand)
            self.assertLessEqual(max(map(len, lines)), columns, subcommand)
            self.assertEqual(sum("halocline " + subcommand in line for line in lines[-2:]), 2, "two examples")
        self.assertLessEqual(max(map(len, self.help("help").splitlines())), 80)

    def test_of_everything_fits_a_terminal(self):
        for topic, columns in ((topic, columns) for topic in ("", "all", *SUBCOMMANDS) for columns in (60, 80, 100)):
            self.assertLessEqual(max(map(len, self.help("help", *topic.split(), columns=columns).splitlines())), columns, topic)

    def test_wins_over_what_is_wrong(self):
        text = self.help("run", "--help")
        for words in (("--radius", "3x", "-h"), ("--foo", "--help"), ("--local", "--help"), ("--help", "--radius", "0")):
            self.assertEqual(self.help("run", *words), text)

    def test_shows_defaults(self):
        text = self.help("run", "--help")
        self.assertRegex(text, r"\n  --radius N +ghost points .* \(3\)\n")
        self.assertRegex(text, r"\n  --overlap +compute .* travel\n")
        self.assertRegex(text, r"\n  --model FILE +system model that chooses transfers\n")

    def test_of_a_subcommand_shows_what_it_uses(self):
        for subcommand in SUBCOMMANDS:
            shown = set(re.findall(r"(?m)^  --([a-z-]+)", self.help(subcommand, "--help"))) - {"help", "print-config"}
            used = [option for option in options() if subcommand in option["used_by"]]
            # Parameters and pictures stand in `help all`.
            self.assertEqual(shown, {one["flag"] for one in used if not one["group"].startswith(("Boundaries", "Padding", "Files of a run", "Parameters of "))})
            self.assertEqual(self.help(subcommand, "--help"), self.help("help", subcommand))

    def test_all_explains_everything(self):
        text = " ".join(self.help("help", "all").split())
        for option in options():
            self.assertIn("--" + option["flag"], text)
            self.assertIn(option["meaning"], text)
            self.assertIn(option["details"], text)
        self.assertNotIn("--inject", text)

    def test_is_the_same_in_each_way(self):
        text = self.help("--help")
        self.assertIn("\nExamples:", text)
        for words in (("-h",), ("help",)):
            self.assertEqual(self.help(*words), text)

    def test_of_two_ranks_is_printed_once(self):
        self.assertEqual(self.halocline("--help", ranks=2).stdout, self.halocline("--help").stdout)

    def test_shows_the_type_notation(self):
        text = self.help("inspect", "--help")
        for name in ("contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block", "struct",
                     "subarray", "darray", "resized", "dup"):
            self.assertRegex(text, rf"(?m)(^  |  ){name}\(")

    def test_version(self):
        for words in (("--version",), ("run", "--version"), ("run", "--radius", "0", "--version")):
            outcome = self.halocline(*words, ranks=2)
            self.assertEqual(outcome.code, 0)
            self.assertRegex(outcome.stdout, r"^halocline \d+\.\d+\.\d+ \(git ([0-9a-f]{40}|unknown)(, dirty)?\)\n$")


class Inspect(InDirectory):
    def inspect(self, expression, **options):
        """Returns the result without the fields that differ each time."""
        outcome = self.halocline("inspect", expression, "--json", **options)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        found = json.loads(outcome.stdout)
        found.pop("seconds", None)
        return found

    def assert_holds(self, found, **expected):
        self.assertEqual({key: found[key] for key in expected}, expected)

    def test_strided_types(self):
        self.assert_holds(
            self.inspect("subarray(C,{16,16,16},{1,8,8},{5,2,3},double)"),
            supported=True, size=512, lb=0, extent=32768, true_lb=10520, true_extent=960, contiguous=False, start=10520,
            counts=[64, 8], strides=[1, 128], packed_strides=[1, 64], blocks=8,
        )
        self.assert_holds(
            self.inspect("vector(5,4,4,double)"),
            supported=True, size=160, extent=160, contiguous=True, start=0, counts=[160], strides=[1], packed_strides=[1],
            blocks=1,
        )
        # Open MPI 4.1 gives this type true bounds that leave out its data. So a handle of it is
        # left to the MPI.
        self.assert_holds(
            self.inspect("vector(3,1,-1,byte)"),
            supported=False, size=3, lb=-2, extent=3, true_lb=-2, contiguous=False, counts=[1, 3], strides=[1, -1],
            packed_strides=[1, 1], blocks=3,
        )
        self.assert_holds(self.inspect("contiguous(0,double)"), supported=True, size=0, extent=0, blocks=0)

    def test_the_plan_follows_the_bounds_of_mpi(self):
        """Checks a type that Open MPI 4.1 gives an extent of 40 bytes, and the standard's rule 32."""
        found = self.inspect("contiguous(2,hvector(3,1,9,struct({1,1},{0,1},{char,double})))")
        distance = found["mpi"]["extent"] // 2
        hidden = self.inspect("resized(struct({1,1},{0,1000},{contiguous(2,hvector(3,1,9,struct({1,1},{0,1},{char,double}))),int}),0,2000)")
        self.assertIn(f"2 x {distance} ->", hidden["plan"])
        self.assertIn(f"1 x {distance} ->", self.inspect("hvector(3,1,9,struct({1,1},{0,1},{char,double}))")["plan"])
        self.assert_holds(found, counts=[27, 2], strides=[1, distance], plan=f"rows of 27-byte runs, loops from the inside 2 x {distance} -> 27\n")

    def test_predefined_types_as_mpi_writes_them(self):
        self.assertEqual(self.inspect("contiguous(3,MPI_DOUBLE)"), self.inspect("contiguous(3,double)"))

    def reconstructed(self, name, text, flag="--displacements"):
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        outcome = self.halocline("inspect", flag, str(path), "--json")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        return json.loads(outcome.stdout)

    def test_displacements(self):
        numbers = [*range(18), *range(100, 124, 2)]
        costs = {"path_cost": 42, "extended_cost": 38, "tree_cost": 34, "elements": 30}
        text = "# Figure 2\n" + "".join(f"{number}\n" for number in numbers)
        found = self.reconstructed("figure2.txt", text)
        self.assert_holds(found, **costs, tree="strc(2,<0,100>,<vec(18,1,leaf(1)),vec(12,2,leaf(1))>)")
        self.assertGreater(found["comparisons"], 0)
        self.assertGreater(found["seconds"], 0)
        self.assert_holds(self.reconstructed("figure2.i64", struct.pack("<30q", *numbers)), **costs)

    def test_type_map(self):
        found = self.reconstructed("map", "double 0\nMPI_INT 8\ndouble 16\nint 24\n", "--typemap")
        self.assert_holds(found, path=None, path_cost=None, tree="vec(2,16,strc(2,<0,8>,<leaf(8),leaf(4)>))", tree_cost=28)
        found = self.reconstructed("map", "double_int 0\ndouble_int 16", "--typemap")
        self.assert_holds(found, tree_cost=28)

    def test_expressions_are_reconstructed(self):
        found = self.inspect("hindexed_block(1,{0,2,3,5,10,12,13,15,20,22,23,25,30,32,33,35},byte)")
        self.assert_holds(found, path="vec(4,10,idx(4,<0,2,3,5>,leaf(1)))", path_cost=22, elements=16)
        self.assertNotIn("path", self.inspect("contiguous(1000000000,byte)"))

    def test_types_that_mpi_does_not_have(self):
        found = self.inspect("triangular(100,1,2,300,double)")
        self.assert_holds(
            found, supported=True, size=80000, blocks=100, elements=10000, type_tree="triangular(100,1,2,2400,8,leaf(8))",
            rule_path="triangular(100,1,2,2400,8,leaf(8))", rule_cost=12,
        )
        self.assertTrue(found["decoded"].startswith("hindexed({1,3,5,7"))
        self.assertLess(found["metadata_bytes"], 100)
        self.assertGreater(found["path_cost"], 10000)
        found = self.inspect("bucket(10,{3,0,1,4,2,0,3,1,5,2},int)")
        self.assertEqual(found["rule_path"], "bucket(10,40,<3,0,1,4,2,0,3,1,5,2>,4,leaf(4))")
        outcome = self.halocline("inspect", "bucket(10,{3,0,1,4,2,0,3,1,5,2},int)", "--verbose")
        self.assertIn("beyond MPI  bucket(", outcome.stdout)
        self.assertNotIn("beyond MPI", self.halocline("inspect", "vector(3,1,2,int)", "--verbose").stdout)

    def test_bad_files(self):
        for name, text, flag, message in (
            ("empty", "# nothing\n", "--displacements", "sequence is empty"),
            ("word", "0\n1 2\n", "--displacements", "line 2 of "),
            ("large", f"{2**61 + 1}\n", "--displacements", "is too large"),
            ("cut.i64", b"1234567", "--displacements", "is cut off"),
            ("type", "double 0\nquadruple 8\n", "--typemap", "'quadruple' is no predefined type (line 2 of "),
            ("lonely", "double\n", "--typemap", "give a type and one displacement per line"),
            ("binary", b"\x01\x02" + b"x" * 99 + b" 0\n", "--typemap", "'??xxx"),
            ("huge", "99999999999999999999\n", "--displacements", "is too large"),
        ):
            path = self.directory / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            outcome = self.halocline("inspect", flag, str(path))
            self.assertEqual(outcome.code, 2, name)
            self.assertIn(message, outcome.stderr)
            self.assertEqual(outcome.stdout, "")
        self.assertEqual(self.halocline("inspect", "--displacements", str(self.directory / "none")).code, 2)
        self.assertEqual(self.halocline("inspect", "--displacements", str(self.directory)).code, 2)
        self.assertEqual(self.halocline("inspect", "double", "--displacements", "x").code, 2)

    def test_huge_files_are_refused_by_name(self):
        """Uses sparse files of terabytes."""
        with open(self.directory / "huge.i64", "wb") as file:
            file.truncate(3 << 40)
        for key, arguments in (
            ("displacements", ("inspect", "--displacements")), ("typemap", ("inspect", "--typemap")),
            ("config file", ("run", "--config")), ("system model", ("predict", "--model")),
        ):  # fmt: skip
            outcome = self.halocline(*arguments, "huge.i64")
            self.assert_refused(outcome, f"{key} cannot be read (huge.i64: is longer than ")

    def test_displacements_from_a_pipe(self):
        outcome = self.halocline("inspect", "--json", "--displacements", "/dev/stdin", inside=("sh", "-c", 'printf "0\\n3\\n6\\n" | "$@"', "sh"))
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertEqual(json.loads(outcome.stdout)["path"], "vec(3,3,leaf(1))")

    def test_counts_do_not_matter(self):
        """Checks that huge numbers of ranks, of elements without data, or of loops over them are answered at once."""
        nothing = "contiguous(2000000000,contiguous(2000000000,contiguous(0,int)))"
        for expression, elements in (
            ("darray(2147483647,5,{2147483647},{block},{default},{2147483647},C,int)", 1),
            ("darray(2147483647,5,{2147483647},{cyclic},{default},{2147483647},C,int)", 1),
            (f"struct({{1,1}},{{0,0}},{{{nothing},vector(2,1,3,int)}})", 2),
            (f"struct({{1,1}},{{0,0}},{{triangular(2000000,0,1,9,{nothing}),int}})", 1),
            (f"struct({{1,1}},{{0,0}},{{bounded_vector(0,1,2,2000000000,{nothing}),int}})", 1),
        ):
            with self.subTest(expression=expression):
                self.assertEqual(self.inspect(expression)["elements"], elements)

    def test_equal_layouts_have_one_form(self):
        forms = ("hvector(3,1,53,contiguous(13,byte))", "hvector(3,13,53,byte)", "hvector(3,1,53,vector(1,13,1,byte))")
        found = [self.inspect(expression) for expression in forms]
        for other in found[1:]:
            self.assert_holds(other, **{key: found[0][key] for key in ("start", "counts", "strides", "packed_strides")})

    def test_types_that_are_not_strided(self):
        found = self.inspect("struct({1,2},{0,8},{int,double})")
        self.assert_holds(
            found, supported=True, size=20, lb=0, extent=24, contiguous=False, start=0, counts=None, strides=None, blocks=2, cost=16
        )
        for expression in (
            "indexed({2,1},{5,0},int)",
            "indexed_block(1,{0,3,4,9},float)",
            "hindexed_block(2,{0,24,52},short)",
            "hindexed({1,2},{0,100},vector(2,1,2,int))",
            "darray(4,1,{10,9},{block,cyclic},{default,2},{2,2},C,double)",
            "struct({1,2},{0,40},{vector(2,1,2,int),short_int})",
            "resized(dup(double_precision),0,24)",
        ):
            found = self.inspect(expression)
            self.assertTrue(found["supported"] and found["type_tree"] and found["canonical"] and found["plan"], expression)
            self.assertGreater(found["cost"], 0, expression)
            self.assertIn("plan ", self.halocline("inspect", expression, "--verbose").stdout)

    def test_stdout_is_one_object_on_any_number_of_ranks(self):
        self.assertEqual(self.inspect("int", ranks=2), self.inspect("int"))

    def test_text_says_where_mpi_differs(self):
        outcome = self.halocline("inspect", "vector(3,1,-1,byte)")
        bounds = self.inspect("vector(3,1,-1,byte)")
        differs = any(bounds["mpi"][key] != bounds[key] for key in bounds["mpi"])
        self.assertEqual("the installed MPI has other bounds" in outcome.stdout, differs)

    def test_the_verdict_is_of_use(self):
        for expression, verdict in (
            ("hindexed({3},{32},int)", "MPI has nothing clearly cheaper"),
            ("dup(dup(int))", "the same in fewer words: int"),
            ("vector(2000000,1,4,double)", "MPI has nothing clearly cheaper that was found (above 1,000,000 elements)"),
            ("hindexed_block(1,{0,32,64,96},double)", "cheapest in MPI: vector(4,1,4,double)"),
        ):
            self.assertEqual(self.halocline("inspect", expression).stdout.splitlines()[-1], verdict, expression)

    def test_the_plot_leaves_devices_and_links_alone(self):
        """Checks that a device is written to and a link is followed."""
        folder = pathlib.Path(self.directory)
        (folder / "real.svg").touch()
        (folder / "link.svg").symlink_to("real.svg")
        targets = ["link.svg"]
        with contextlib.suppress(PermissionError):  # root alone may make devices
            os.mknod(folder / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            targets.append("null")
        for target in targets:
            outcome = self.halocline("compare", "--local", "8", "8", "8", "--methods", "p2p,vendor-p2p", "--plot", target)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertFalse((folder / (target + ".part")).exists())
        self.assertTrue((folder / "link.svg").is_symlink())
        self.assertIn("<svg", (folder / "real.svg").read_text())
        if len(targets) > 1:
            self.assertTrue((folder / "null").is_char_device())

    def test_the_summary_answers_first(self):
        """Checks that the answer is words and a picture; trees and costs come only on request."""
        for expression, lines in (
            ("vector(10000,1,4,double)", (
                "80,000 bytes in 10,000 runs of 8 bytes, 32 bytes apart, over 319,976 bytes",
                "  [########........................]  8 of 32 bytes, 10,000 times",
                "copied as rows of 8 bytes", "extent 319,976 bytes", "MPI has nothing clearly cheaper",
            )),
            ("hindexed_block(1,{0,16,32,48},vector(2,1,1,float))", (
                "32 bytes in 4 runs of 8 bytes, 16 bytes apart, over 56 bytes",
                "  [################................]  8 of 16 bytes, 4 times",
                "copied as rows of 8 bytes", "extent 56 bytes", "cheapest in MPI: vector(4,2,4,float)",
            )),
            ("vector(5,1,0,double)", (
                "40 bytes in 5 runs of 8 bytes, 0 bytes apart, over 8 bytes",
                "  [################################]  the same 8 bytes, 5 times",
            )),
            ("hvector(5,2,8,double)", (
                "80 bytes in 5 runs of 16 bytes, 8 bytes apart, over 48 bytes",
                "  [################################]  16 bytes every 8 bytes, overlapping, 5 times",
            )),
            ("contiguous(8,resized(vector(8,1,8,double),0,8))", (
                "512 bytes in 64 runs of 8 bytes over 512 bytes, not in the order of memory",
            )),
            ("indexed({3,5,2},{1,8,41},int)", (
                "40 bytes in 3 runs of about 13 bytes over 168 bytes",
                "  [####.....+######.....................................+##]",
                "  each sign is 3 bytes: # full, + half and more, - less, . empty",
                "copied as a list of blocks of 4 bytes",
                "extent 168 bytes, lower bound 4; data begin at byte 4",
            )),
            ("contiguous(5,double)", ("40 bytes in one piece; copied by memcpy", "extent 40 bytes", "MPI has nothing clearly cheaper")),
            ("contiguous(0,double)", ("no data", "extent 0 bytes")),
        ):
            outcome = self.halocline("inspect", expression)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            printed = outcome.stdout.splitlines()
            self.assertEqual(tuple(printed[: len(lines)]), lines, expression)
            self.assertNotIn("cost", outcome.stdout)


class Results(InDirectory):
    def test_records_follow_the_schema(self):
        schema = json.loads((SOURCE / "results" / "schema.json").read_text(encoding="utf-8"))
        tiny = ("--quiet", "--local", "8", "8", "8", "--fields", "1", "--output", "out", "--csv", "csv")
        for arguments in (
            ("run", "--steps", "1"),
            ("run", "--steps", "5", "--overlap", "--progress", "3", "--methods", "p2p"),
            ("compare", "--iterations", "3"),
        ):
            outcome = self.halocline(*arguments, *tiny, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
        records = [json.loads(line) for line in (self.directory / "out").read_text().splitlines()]
        self.assertEqual([record["kind"] for record in records], ["run"] * 2 + ["compare"] * 13)
        overlapped = [record for record in records if record["overlap"]]
        self.assertEqual(overlapped, records[1:2])
        for record in records:
            self.assertEqual(list(record), schema["required"])
            for key in ("phases", "samples_s", "provenance"):
                self.assertEqual(list(record[key]), schema["properties"][key]["required"])
            total = record["samples_s"]["total"]
            self.assertEqual(len(total), record["iterations"])
            self.assertEqual(sorted(total)[0], record["phases"]["total"]["min_s"])
            self.assertIs(record["verified"], True)
            for key in ("timeline", "progress", "overlap_ratio"):
                self.assertEqual(record[key] is not None, record["overlap"], key)
        self.check_overlap(overlapped[0], schema)
        with open(self.directory / "csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["method"] for row in rows], [record["method"] for record in records])
        for row, record in zip(rows, records):
            self.assertEqual(float(row["total_median_s"]), record["phases"]["total"]["median_s"])
            self.assertEqual(row["global_z"], str(record["global"][2]))
            for key in ("describe", "packer", "stencil", "shape", "messages_per"):
                self.assertIn(record[key], schema["properties"][key]["enum"])
                self.assertEqual(row[key], record[key])
            self.assertEqual(row["periodic"], "true")
            self.assertEqual((record["nodes"], record["nodes_emulated"], record["bytes_off_node_total"]), (1, False, 0))
            self.assertEqual(row["notes"], "; ".join(record["notes"]))


    def check_overlap(self, record, schema):
        self.assertEqual((record["iterations"], record["progress"]), (3, 3))
        samples, phases = record["samples_s"], record["phases"]
        self.assertEqual([len(samples[f"plain_{phase}"]) for phase in ("exchange", "compute", "total")], [2, 2, 2])
        for post, interior, wait, boundary, total in zip(
            *(samples[phase] for phase in ("post", "interior", "wait", "boundary", "total"))
        ):
            # Each phase is the slowest rank's, so the sum of the parts may exceed the total.
            self.assertGreaterEqual(post + interior + wait + boundary, total * (1 - 1e-9))
        longest = max(phases["plain_compute"]["median_s"], phases["plain_exchange"]["median_s"])
        self.assertAlmostEqual(record["overlap_ratio"], phases["total"]["median_s"] / longest)
        timeline = schema["properties"]["timeline"]["required"]
        self.assertEqual(list(record["timeline"]), timeline)
        for name in timeline:
            self.assertEqual(len(record["timeline"][name]), 2)
            phase = phases[name.removesuffix("_s")]
            self.assertLessEqual(max(record["timeline"][name]), phase["max_s"])


class Info(InDirectory):
    def test_json(self):
        outcome = self.halocline("info", "--json", "--threads", "1", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        facts = json.loads(outcome.stdout)
        self.assertEqual((facts["ranks"], facts["threads"], facts["threads_reason"]), (2, 1, "threads option"))
        self.assertIn("alltoallv", facts["methods"])
        self.assertEqual((facts["nodes"], facts["nodes_emulated"]), (1, False))

    def test_emulated_nodes(self):
        outcome = self.halocline("info", "--json", "--ranks-per-node", "1", ranks=2)
        facts = json.loads(outcome.stdout)
        self.assertEqual((facts["nodes"], facts["nodes_emulated"]), (2, True))


if __name__ == "__main__":
    unittest.main()
