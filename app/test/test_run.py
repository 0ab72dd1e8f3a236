# SPDX-License-Identifier: BSD-3-Clause
"""Tests the mini-app end to end: one state hash in all settings, faults that are seen, and sizes that do not fit.

matrix_test.cpp goes through all combinations of the settings that change no bit. Here the program runs once with
each."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

from halocline_program import BINARY, MPIEXEC, TIMEOUT_S, halocline, options, own_session, several

CORRECTNESS = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "configs" / "correctness.toml"
RANKS = tuple(int(n) for n in os.environ["HALOCLINE_RANKS"].split())
LAYOUTS = ("soa", "aos")
DESCRIPTIONS = ("subarray", "vector", "hvector", "hindexed", "struct")
OURS = ("alltoallv", "neighbor", "p2p", "shared", "auto")
VENDORS = ("vendor-pack", "vendor-alltoallw", "vendor-neighbor", "vendor-p2p")
METHODS = OURS + VENDORS


def run(case):
    """Runs a case (number of ranks, arguments)."""
    ranks, arguments = case
    return halocline("run", "--config", CORRECTNESS, *arguments, ranks=ranks)


def run_quietly(case):
    ranks, arguments = case
    return run((ranks, ("--quiet", *arguments)))


class Run(unittest.TestCase):
    def state_hash_in(self, outcome):
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"\Astate hash: 0x[0-9a-f]{16}\n\Z")
        return outcome.stdout.split()[-1]

    def assert_one_state_hash(self, cases):
        """Checks that all cases agree with the first. `cases`: arguments of run()."""
        expected = None
        for (ranks, arguments), outcome in several(run_quietly, cases):
            with self.subTest(ranks=ranks, arguments=arguments):
                found = self.state_hash_in(outcome)
                expected = expected or found
                self.assertEqual(found, expected)


    def assert_refused(self, names, outcome):
        self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
        self.assertIn(names, outcome.ours[0])


class StateHash(Run):
    def test_same_for_every_rank_count_layout_and_description(self):
        cases = itertools.product(LAYOUTS, DESCRIPTIONS)
        self.assert_one_state_hash(
            [(ranks, ()) for ranks in RANKS]
            + [(2, ("--layout", layout, "--describe", describe)) for layout, describe in cases]
        )

    def test_same_for_every_padding(self):
        ways = (("--layout", "aos"), ("--describe", "vector", "--methods", "shared"), ("--overlap", "--methods", "p2p"))
        self.assert_one_state_hash(
            [(1, ())] + [(2, ("--pad", pad, *way)) for pad, way in itertools.product(("none", "32", "64", "128"), ways)]
        )
        mhd = ("run", "--physics", "mhd", "--global", "13", "12", "11", "--steps", "2", "--mhd.forcing", "0.1", "--quiet")
        hashes = {
            halocline(*mhd, "--pad", pad, "--layout", layout, ranks=2).stdout
            for pad, layout in itertools.product(("auto", "none", "64"), LAYOUTS)
        }
        self.assertEqual(len(hashes), 1, hashes)
        self.assertRegex(hashes.pop(), "state hash: 0x")

    def test_same_for_every_method_packer_thread_count_and_decomposition(self):
        self.assert_one_state_hash(
            [(1, ())]
            + [(3, ("--methods", method)) for method in METHODS]
            + [
                (4, arguments)
                for arguments in (
                    ("--packer", "kokkos"),
                    ("--packer", "kokkos", "--threads", "2"),
                    ("--threads", "2", "--layout", "aos"),
                    ("--decomposition", "4", "1", "1"),
                    ("--decomposition", "1", "4", "1"),
                    ("--radius", "4"),
                    ("--radius", "3", "5", "4"),
                    ("--radius", "4,3,5", "--layout", "aos", "--shape", "axes", "--overlap"),
                )
            ]
        )

    def test_open_boundaries_stencils_and_floats_too(self):
        for arguments in (
            ("--periodic", "false"),
            ("--periodic", "true", "false", "false"),
            ("--element", "float"),
            ("--element", "complex"),
            ("--element", "complex-float", "--periodic", "true,false,false", "--boundary", "symmetric"),
            ("--stencil", "heat9"),
            ("--stencil", "heat3"),
            ("--stencil", "point26"),
            ("--stencil", "point26", "--radius", "1", "--fields", "3"),
        ):
            self.assert_one_state_hash(
                [
                    (1, arguments),
                    (4, arguments + ("--layout", "aos")),
                    (3, arguments + ("--packer", "kokkos")),
                    (4, arguments + ("--shape", "axes", "--methods", "p2p")),
                    (2, arguments + ("--neighbors", "26", "--messages", "region", "--methods", "vendor-p2p")),
                ]
            )

    def test_same_for_every_shape_and_message(self):
        ways = (
            ("--shape", "axes", "--methods", "shared"),
            ("--shape", "axes", "--methods", "p2p", "--messages", "region"),
            ("--methods", "p2p", "--messages", "field"),
        )
        self.assert_one_state_hash(
            [(1, ())]
            + [(ranks, way) for ranks, way in itertools.product((2, 4), ways)]
            + [(3, ("--shape", "axes", "--methods", method, "--messages", "field")) for method in ("vendor-p2p", "neighbor")]
        )

    def test_depends_on_the_state(self):
        cases = ((), ("--steps", "5"), ("--stages", "1"), ("--fields", "7"), ("--stencil", "heat3"))
        hashes = [
            self.state_hash_in(outcome) for _, outcome in several(run_quietly, [(1, arguments) for arguments in cases])
        ]
        self.assertEqual(len(set(hashes)), len(hashes))

    def test_the_wave_is_still_there_after_many_steps_on_few_points(self):
        for arguments in (
            ("--global", "12", "12", "12", "--steps", "300"),
            ("--global", "6", "6", "6", "--steps", "2000", "--stages", "1"),
            ("--global", "8", "8", "8", "--steps", "20", "--element", "float"),
        ):
            outcome = halocline("run", *arguments, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(outcome.stdout, r"allowed 1\.0e-(12|05)\n")


    def test_waves_that_are_gone_are_compared_too(self):
        """Rounding errors have smooth parts, which outlive the waves. So they were taken for faults."""
        for element in ("double", "float", "complex"):
            outcome = halocline("run", "--global", "14", "12", "10", "--heat.diffusion", "0.05", "--steps", "300", "--element", element, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(" ".join(outcome.stdout.split()), r"wave off by \S+ of its amplitude after 300 steps")

class Mhd(Run):
    TINY = ("--physics", "mhd", "--global", "12", "10", "14", "--steps", "4", "--quiet")

    def state_hashes(self, cases):
        jobs = several(lambda case: halocline("run", *self.TINY, *case[1:], ranks=case[0]), cases)
        return [(case, self.state_hash_in(outcome)) for case, outcome in jobs]

    def records(self, *arguments, ranks=1):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "records.jsonl"
            outcome = halocline(*arguments, "--output", path, ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            return [json.loads(line) for line in path.read_text().splitlines()]

    def test_same_state_on_an_emulated_device(self):
        for settings in ((), ("--mhd.forcing", "0.1", "--mhd.entropy", "no"), ("--mhd.initial", "random", "--overlap")):
            on_device, on_host = (halocline("run", *self.TINY, *settings, "--memory", memory, ranks=2,
                                            inside=("env", "HALOCLINE_DEVICE=emulated")) for memory in ("device", "host"))
            self.assertEqual(self.state_hash_in(on_device), self.state_hash_in(on_host), settings)

    def test_same_state_in_all_settings(self):
        settings = [(), ("--overlap",), ("--layout", "aos"), ("--shape", "axes"), ("--mhd.nu", "0.005"), ("--threads", "2")]
        settings.append(("--radius", "3,5,4"))
        cases = [(ranks, *setting) for ranks in RANKS for setting in settings if ranks <= 4]
        cases += [(2, "--methods", method) for method in METHODS]
        hashes = self.state_hashes(cases)
        for case, found in hashes:
            with self.subTest(case=case):
                self.assertEqual(found, hashes[0][1])

    def test_same_state_with_shock_viscosity(self):
        settings = [(), ("--layout", "aos"), ("--shape", "axes"), ("--radius", "3,5,4"), ("--memory", "device"), ("--methods", "shared")]
        cases = [(ranks, "--mhd.shock", "1", *setting) for ranks in (1, 2, 4) for setting in settings]
        hashes = [self.state_hash_in(halocline("run", *self.TINY, *case[1:], ranks=case[0], inside=("env", "HALOCLINE_DEVICE=emulated"))) for case in cases]
        self.assertEqual(len(set(hashes)), 1, dict(zip(cases, hashes)))
        plain, shocked = (self.records("run", *self.TINY, "--mhd.shock", shock)[0] for shock in ("0", "1"))
        self.assertGreater(shocked["bytes_to_self"], plain["bytes_to_self"])
        self.assertIn("shock takes 3 exchanges more in each substep, with 26, 26 and 6 neighbours", shocked["notes"])
        for arguments in (("--overlap",), ("--wide", "3")):
            outcome = halocline("run", *self.TINY, "--mhd.shock", "1", *arguments)
            self.assert_refused(f"{arguments[0][2:]} is not possible with a field that takes exchanges of its own (shock): leave one of them out", outcome)

    def test_each_field_gets_the_ghosts_that_it_reads(self):
        for arguments, blocks in (((), 96), (("--layout", "aos"), 144), (("--neighbors", "18"), 144), (("--neighbors", "26"), 208)):
            with self.subTest(arguments=arguments):
                outcome = halocline("compare", "--physics", "mhd", "--dry-run", *arguments)
                self.assertIn(f"exchanged: {blocks} of 208 field-blocks, ", outcome.stdout)
        (record,) = self.records("run", *self.TINY)
        self.assertEqual((record["physics"], record["needs_by_field"], record["neighbors"]), ("mhd", True, 18))

    def test_its_halos_are_compared(self):
        records = self.records("compare", "--physics", "mhd", "--global", "12", "10", "14", "--iterations", "2", "--quiet", ranks=2)
        self.assertEqual({record["verified"] for record in records}, {True})
        masked = records[0]["bytes_to_others"] + records[0]["bytes_to_self"]
        (plain, *_) = self.records("compare", "--global", "12", "10", "14", "--iterations", "2", "--quiet", ranks=2)
        self.assertLess(masked, plain["bytes_to_others"] + plain["bytes_to_self"])

    def test_faults_in_its_halos_are_seen(self):
        cases = [("--inject", "flip", "--methods", method) for method in METHODS]
        cases += [("--inject", kind) for kind in ("drop", "swap", "stale")]
        for case, outcome in several(lambda case: halocline("run", *self.TINY, *case, ranks=2), cases):
            with self.subTest(case=case):
                self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
                self.assertIn("verification failed", outcome.ours[0])

    def test_a_wide_halo_gives_the_same_state(self):
        large = ("run", "--global", "26", "24", "22", "--steps", "7", "--quiet")
        for physics, widths in (("mhd", (3,)), ("heat", (2, 3))):
            arguments = (*large, "--physics", physics)
            expected = self.state_hash_in(halocline(*arguments))
            for wide, ranks in ((wide, ranks) for wide in widths for ranks in (1, 2, 4)):
                for settings in (), ("--layout", "aos"), ("--shape", "axes", "--methods", "p2p"), ("--radius", "4" if ranks == 1 else "3"):
                    with self.subTest(physics=physics, wide=wide, ranks=ranks, settings=settings):
                        self.assertEqual(self.state_hash_in(halocline(*arguments, "--wide", str(wide), *settings, ranks=ranks)), expected)
        opened = (*large, "--periodic", "false")
        expected = self.state_hash_in(halocline(*opened))
        self.assertEqual(self.state_hash_in(halocline(*opened, "--wide", "2", ranks=4)), expected)
        for arguments, text in (
            (("--physics", "mhd", "--wide", "2"), "wide does not suit mhd (wide 2): give a multiple of its 3 substeps"),
            (("--wide", "8"), "wide is too large (wide 8 of radius 3, global has 22 points in z): use a smaller wide or more points"),
            (("--wide", "2", "--overlap"), "wide and overlap exclude each other"),
            (("--wide", "2", "--neighbors", "18"), "neighbors are too few for a wide halo"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(text, halocline(*large, *arguments))
        tiny = ("--stencil", "point26", "--radius", "1", "--decomposition", "1,1,2")
        self.assert_refused("radius is larger than the local extent (radius 6 with wide 6, some rank has 5 points in z): use a smaller wide", halocline("run", *tiny, "--global", "10", "10", "10", "--wide", "6", ranks=2))
        self.assert_refused("wide is too large (wide 7 of radius 3, local has 20 points in y)", halocline("run", "--local", "26", "20", "26", "--wide", "7", ranks=2))

    def test_depends_on_the_parameters(self):
        parameters = [option for option in options() if option["flag"].startswith("mhd.")]
        other = {"yes": "no", "no": "yes", "waves": "random"}
        changed = {p["flag"]: other.get(p["default"]) or str(float(p["default"]) * 1.01 or 0.001) for p in parameters}
        changed["mhd.forcing-k-max"] = "1.5"
        needed = {"mhd.forcing-": ("--mhd.forcing", "0.1"), "mhd.shell-": ("--mhd.initial", "explosion")}
        self.assertGreater(len(changed), 20)
        cases = [(1,), *((1, *flags) for flags in needed.values())]
        for name, value in changed.items():
            flags = [flags for begin, flags in needed.items() if name.startswith(begin)]
            if name == "mhd.forcing-k-min":  # a little more leaves the wave vectors as they are
                value, flags = "2", [("--mhd.forcing", "0.1", "--mhd.forcing-k-max", "2.5")]
            cases.append((1, f"--{name}", value, *(flags[0] if flags else ())))
        hashes = self.state_hashes(cases)
        hashes += self.state_hashes([(1, "--element", "float")])
        self.assertEqual(len({found for _, found in hashes}), len(hashes), hashes)

    def test_reads_parameters_from_a_table(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.toml"
            path.write_text('physics = "mhd"\n[mhd]\nnu = 0.0123\n[run]\nsteps = 4\n')
            outcome = halocline("run", "--config", path, "--global", "12", "10", "14", "--quiet")
            ((_, by_flag),) = self.state_hashes([(1, "--mhd.nu", "0.0123")])
            self.assertEqual(self.state_hash_in(outcome), by_flag)
            path.write_text("[mhd]\nnu = 1\nnuu = 2\n")
            self.assert_refused("line 3 of " + str(path) + "): did you mean mhd.nu?", halocline("run", "--config", path))

    def test_what_does_not_suit_it_is_refused(self):
        for arguments, text in (
            (("--fields", "3"), "fields are not those of mhd (fields 3): leave fields out, mhd has 8"),
            (("--fields", "8", "--mhd.entropy", "no"), "leave fields out, mhd has 7"),
            (("--mhd.upwind", "2"), 'mhd.upwind cannot be used ("2", command line): give one of no, yes'),
            (("--stages", "3"), "stages are those of mhd (stages 3)"),
            (("--periodic", "false"), "boundary is exact, but mhd has no exact ghosts (side x-): use boundary = "),
            (("--stencil", "point26"), "stencil is that of mhd (stencil point26): leave stencil out, it is for physics heat"),
            (("--radius", "2"), "radius is too small for the stencil (radius 2 in x, mhd reaches 3 points)"),
            (("--radius", "3", "3", "2"), "radius is too small for the stencil (radius 2 in z, mhd reaches 3 points)"),
            (("--radius", "3", "11", "3", "--decomposition", "1,1,1"), "radius is larger than the local extent (radius 11, some rank has 10 points in y)"),
            (("--neighbors", "6"), "neighbors are too few for the stencil (neighbors 6, mhd reads 18)"),
            (("--element", "complex"), "mhd has real fields (element complex): use element = "),
            (("--mhd.nu", "-1"), "mhd.nu cannot be used (-1.0, command line): give a number from 0 on"),
            (("--mhd.gamma", "1"), "mhd.gamma is not that of a gas (1.000000): give a number above 1, or mhd.entropy no"),
            (("--mhd.forcing-helicity", "-2"), "mhd.forcing-helicity is too large (-2.000000): give a number from -1 to 1"),
            (("--mhd.magnetic", "no", "--mhd.b0z", "1"), "mhd.b0x, mhd.b0y and mhd.b0z are of a magnetic field (mhd.magnetic no)"),
            (("--mhd.gamma", "0"), "mhd.gamma cannot be used (0.0, command line): give a number above 0"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(text, halocline("run", *self.TINY, *arguments))
        self.assertNotIn("point26", halocline("run", *self.TINY, "--radius", "2").stderr)
        outcome = halocline("run", *self.TINY, "--mhd.b0x", "1e200", ranks=2)
        self.assertEqual((outcome.code, outcome.ours), (1, ["halocline: the time step is 0 at step 0: check the initial state and the sides, or use a shorter time step or more viscosity"]))
        self.assert_refused("mhd.nu is not used by physics heat (physics heat): leave mhd.nu out, or use --physics mhd",
                            halocline("run", "--mhd.nu", "1"))

    def test_stores_the_fields_that_evolve(self):
        for arguments, fields in (((), 8), (("--mhd.entropy", "no"), 7), (("--mhd.magnetic", "no"), 5),
                                  (("--mhd.entropy", "no", "--mhd.magnetic", "no"), 4)):
            outcomes = [halocline("run", *self.TINY[:-1], *arguments, *more, ranks=ranks)
                        for ranks, more in ((1, ()), (2, ("--overlap", "--layout", "aos")))]
            hashes = {outcome.stdout.splitlines()[-1] for outcome in outcomes}
            self.assertEqual([outcome.code for outcome in outcomes], [0, 0], outcomes[1].stderr)
            self.assertEqual(len(hashes), 1, hashes)
            self.assertIn(f"{fields} fields of double", " ".join(outcomes[0].stdout.split()))

    def test_is_compared_with_an_exact_solution(self):
        for arguments in (("beltrami",), ("alfven", "--mhd.b0x", "1"), ("uniform", "--element", "float")):
            outcome = halocline("run", *self.TINY[:-1], "--mhd.initial", *arguments, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(" ".join(outcome.stdout.split()), r"wave off by \S+ of its amplitude after 4 steps")

    def test_has_configurations_that_run(self):
        files = sorted(CORRECTNESS.parent.glob("mhd-*.toml"))
        self.assertGreater(len(files), 4)
        cases = [*((path, ()) for path in files), (CORRECTNESS.parent / "astaroth-256.toml", ("--local", "16", "16", "16"))]
        with tempfile.TemporaryDirectory() as folder:  # some of them write files
            jobs = list(several(lambda case: halocline("run", "--config", case[0], "--steps", "3", *case[1], ranks=2, cwd=folder), cases))
        for (path, _), outcome in jobs:
            with self.subTest(path=path.name):
                self.assertEqual(outcome.code, 0, outcome.stderr)
                known = path.stem in ("mhd-alfven", "mhd-beltrami")
                self.assertIn("of its amplitude" if known else "no exact solution", " ".join(outcome.stdout.split()))

    def test_says_that_it_has_broken_down(self):
        outcome = halocline("run", *self.TINY, "--mhd.dt", "1")
        self.assert_refused("mhd.dt is not stable (mhd.dt 1, some wave grows in steps above 0.0", outcome)
        outcome = halocline("run", *self.TINY, "--mhd.dt", "1", "--force-dt", "--mhd.eta", "1")
        self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
        self.assertIn("is not finite at step 4, point (", outcome.ours[0])


class Boundaries(Run):
    KINDS = ("exact", "symmetric", "antisymmetric", "fixed")
    MIXED = ("--boundary", "fixed,symmetric,antisymmetric,antisymmetric,symmetric,fixed")
    MIRRORS = ("--boundary", "symmetric", "antisymmetric", "exact", "symmetric", "antisymmetric", "antisymmetric")

    def test_same_state_in_all_settings(self):
        of_heat = [("--periodic", "false", "--boundary", kind) for kind in self.KINDS]
        of_heat += [("--periodic", "false", *self.MIXED), ("--periodic", "true,false,false", *self.MIRRORS)]
        tiny = ("--physics", "mhd", "--fields", "8", "--stages", "1")
        of_mhd = [(*tiny, "--periodic", "false,false,true", "--boundary", kind) for kind in self.KINDS[1:]]
        for arguments in (*of_heat, *of_mhd):
            self.assert_one_state_hash(
                [
                    (1, arguments),
                    (2, arguments + ("--layout", "aos", "--shape", "axes", "--methods", "p2p")),
                    (3, arguments + ("--methods", "shared", "--overlap")),
                    (4, arguments + ("--methods", "vendor-pack", "--radius", "4,5,3")),
                    (2, arguments + ("--wide", "3")),
                    (4, arguments + ("--methods", "p2p", "--overlap", "--layout", "aos")),
                ]
            )

    def test_mirrors_keep_the_wave_of_heat_exact(self):
        for arguments in (self.MIRRORS, ("--boundary", "symmetric"), ("--boundary", "antisymmetric")):
            for stencil in ("heat13", "heat9", "heat3", "point26"):
                outcome = halocline("run", "--global", "12", "11", "13", "--periodic", "false", *arguments, "--stencil", stencil, "--steps", "100", ranks=2)
                self.assertEqual(outcome.code, 0, outcome.stderr)
                self.assertRegex(outcome.stdout.replace("\n", " "), r"wave off by \S+ of its amplitude after 100 steps")

    def test_fixed_sides_have_no_exact_solution(self):
        outcome = halocline("run", "--local", "8", "8", "8", "--periodic", "false", "--boundary", "fixed")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("every value is finite after 10 steps", outcome.stdout.replace("\n", " "))

    def test_what_does_not_suit_is_refused(self):
        for arguments, text in (
            (("--boundary", "symmetric"), "boundary has no side (all axes are periodic): use periodic = false, or leave boundary out"),
            (("--boundary", "fixed", "exact", "--periodic", "false"), 'give one value or six, each one of exact, symmetric, antisymmetric, fixed'),
            (("--boundary", "open", "--periodic", "false"), 'boundary cannot be used ("open", command line): give one value or six'),
            (("--boundary", "symmetric", "--periodic", "false", "--local", "8", "3", "8"), "boundary has too few points to mirror (boundary symmetric, radius 3, some rank has 3 points in y): use"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(text, halocline("run", *arguments))


class Nodes(Run):
    def test_state_hash_is_the_same_wherever_ranks_stand(self):
        by_node = ("--reorder", "node", "--ranks-per-node")
        cases = (
            (4, ("--decomposition", "1", "2", "2", *by_node, "1,3")),
            (4, ("--reorder", "none", "--ranks-per-node", "3")),
            (6, ("--decomposition", "1", "2", "3", *by_node, "3")),
            (6, (*by_node, "4")),
            (8, ("--decomposition", "4", "2", "1", *by_node, "3,3,2")),
            (8, (*by_node, "2")),
        )
        self.assert_one_state_hash([(1, ())] + [case for case in cases if case[0] in RANKS])

    def test_every_method_finds_its_ghosts_when_ranks_are_mapped(self):
        arguments = ("--decomposition", "1", "2", "2", "--ranks-per-node", "1,3", "--reorder", "node")
        for periodic in ("true", "false", "true,true,false"):
            outcome = halocline("compare", "--config", CORRECTNESS, *arguments, "--periodic", periodic, ranks=4)
            self.assertEqual(outcome.code, 0, outcome.stderr)

    def compare(self, ranks, *arguments):
        """Returns the records of a comparison, and its stdout."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            outcome = halocline("compare", *arguments, "--iterations", 1, "--output", path, ranks=ranks)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], outcome.stdout

    def test_records_count_what_leaves_nodes(self):
        # There are two nodes of two ranks, cut in z.
        arguments = ("--local", 8, 8, 8, "--decomposition", 1, 2, 2)
        records, text = self.compare(4, *arguments, "--ranks-per-node", 2)
        # Up and down go a face of 8 x 8 points, 3 deep, with its edges and corners; 8 fields of
        # double.
        rank = 2 * 3 * (8 + 6) * (8 + 6) * 8 * 8
        for record in records:
            self.assertEqual((record["nodes"], record["nodes_emulated"], record["reorder"]), (2, True, "none"))
            self.assertEqual(record["bytes_off_node"], rank)
            self.assertEqual(record["bytes_off_node_of_node"], 2 * rank)
            self.assertEqual(record["bytes_off_node_total"], 4 * rank)
            self.assertEqual((record["messages"], record["messages_off_node"]), (3, 2))
        self.assertIn(" on 2 emulated nodes, ", text)
        self.assertRegex(text, r"of it to other nodes: up to \S+ KiB of a rank in 2 messages, ")
        records, text = self.compare(4, *arguments)
        self.assertEqual({(record["nodes"], record["bytes_off_node"]) for record in records}, {(1, 0)})
        self.assertNotIn("nodes", text)

    def test_dry_run_predicts_what_is_counted_and_shows_the_gain(self):
        arguments = ("--global", 24, 24, 24, "--decomposition", 1, 2, 3, "--ranks-per-node", "3")
        predicted = {}
        for reorder in ("none", "node"):
            outcome = halocline("compare", *arguments, "--reorder", reorder, "--dry-run", ranks=6)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertIn("to other nodes per exchange, 2 emulated nodes:\n", outcome.stdout)
            lines = re.findall(r"  (mapped as shown|natural order) +(\S+ \S+) in all, (\S+ \S+) by the node", outcome.stdout)
            self.assertEqual([name for name, *_ in lines], ["mapped as shown", "natural order"])
            predicted[reorder] = {name: values for name, *values in lines}
            records, text = self.compare(6, *arguments, "--reorder", reorder, "--methods", "alltoallv")
            total, busiest = predicted[reorder]["mapped as shown"]
            self.assertIn(f"{busiest} of a node, {total} in all (reorder {reorder})", text)
            ranks = [line.split() for line in outcome.stdout.splitlines() if re.match(r" +\d+  \d+ x", line)]
            self.assertEqual([line[-4] for line in ranks], ["0"] * 3 + ["1"] * 3)
        self.assertEqual(predicted["none"]["mapped as shown"], predicted["none"]["natural order"])
        self.assertEqual(predicted["none"]["natural order"], predicted["node"]["natural order"])
        self.assertNotEqual(predicted["node"]["mapped as shown"], predicted["node"]["natural order"])

    def test_one_node_has_no_columns_of_nodes(self):
        outcome = halocline("compare", "--local", "8", "8", "8", "--ranks-per-node", "9", "--dry-run", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertNotIn("node ", outcome.stdout.replace("a node needs", ""))


class Overlap(Run):
    def overlapped(self, ranks, *arguments):
        return ranks, ("--overlap", *arguments)

    def test_changes_no_bit_in_any_method(self):
        self.assert_one_state_hash(
            [(1, ())]
            + [self.overlapped(ranks, "--methods", "p2p") for ranks in RANKS]
            + [self.overlapped(3, "--methods", method) for method in METHODS if method != "p2p"]
            + [
                self.overlapped(4, "--methods", "p2p", *arguments)
                for arguments in (
                    ("--progress", "0"),
                    ("--progress", "1000", "--layout", "aos"),
                    ("--threads", "2", "--packer", "kokkos"),
                    ("--decomposition", "4", "1", "1"),
                    ("--decomposition", "1", "4", "1"),
                )
            ]
        )

    def test_changes_no_bit_elsewhere_either(self):
        small = ("--global", "12", "12", "13")  # on 8 ranks, some have no interior
        for ranks, arguments in (
            (4, ("--periodic", "false")),
            (2, ("--element", "float")),
            (3, ("--element", "complex")),
            (6, ("--stencil", "heat9", "--periodic", "false,true,false")),
            (4, ("--stencil", "heat3", "--stages", "1")),
            (3, ("--stencil", "point26", "--radius", "1")),
            (8, small),
            (8, small + ("--stencil", "point26", "--element", "float")),
        ):
            self.assert_one_state_hash(
                [
                    (1, arguments),
                    self.overlapped(ranks, "--methods", "p2p", *arguments),
                    self.overlapped(2, "--methods", "shared", "--layout", "aos", *arguments),
                ]
            )

    def test_is_shown_for_each_rank_and_beside_the_substeps_without(self):
        outcome = run((2, ("--overlap", "--methods", "p2p")))
        self.assertEqual(outcome.code, 0, outcome.stderr)
        for phase in ("post", "interior", "wait", "boundary", "total", "plain_compute", "plain_total"):
            self.assertRegex(outcome.stdout, rf"(?m)^{phase} +[0-9]")
        self.assertIn("6 substeps with overlap, 6 without", outcome.stdout)
        for rank in range(2):
            self.assertRegex(outcome.stdout, rf"(?m)^ +{rank}( +[0-9.]+ [num]?s){{4}}$")
        self.assertRegex(outcome.stdout, r"(?m)^overlap: [0-9.]+ x as fast as a substep without, [0-9.]+ x as fast as max\(compute, exchange\)")
        self.assertNotIn("nothing to overlap with", outcome.stdout)

    def test_says_where_there_is_nothing_to_overlap_with(self):
        for ranks, method, words in (
            (2, "alltoallv", "a collective"),
            (2, "vendor-neighbor", "a collective"),
            (2, "shared", "on a node"),
            (1, "p2p", "one rank"),
        ):
            outcome = run((ranks, ("--overlap", "--methods", method)))
            self.assertRegex(outcome.stdout, rf"(?m)^nothing to overlap with: .*{words}")
        self.assertNotIn("overlap", run((2, ("--methods", "shared"))).stdout)

    def test_any_number_of_steps(self):
        for steps in range(3):
            outcome = run((2, ("--overlap", "--steps", str(steps), "--stages", "1")))
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertEqual("x as fast as a substep without" in outcome.stdout, steps == 2)


class Inject(Run):
    def test_every_fault_is_seen_in_every_method(self):
        kinds = ("drop", "swap", "flip")
        cases = [(ranks, ("--inject", kind)) for kind, ranks in itertools.product(kinds, (1, 2))]
        cases += [(2, ("--inject", "flip", "--methods", method)) for method in METHODS]
        cases += [(2, ("--inject", kind, "--element", "complex")) for kind in kinds]
        cases += [(2, ("--inject", kind, "--shape", "axes", "--methods", "p2p", "--stencil", "heat9")) for kind in kinds]
        for (ranks, arguments), outcome in several(run, cases):
            with self.subTest(ranks=ranks, arguments=arguments):
                self.assertEqual((outcome.code, len(outcome.ours)), (1, 1), outcome.stderr)
                self.assertIn("verification failed", outcome.ours[0])
                self.assertNotIn("state hash", outcome.stdout)

    def test_swaps_messages_that_differ_even_on_the_smallest_grid(self):
        outcome = halocline("run", "--local", "3", "3", "3", "--layout", "aos", "--inject", "swap", ranks=2)
        self.assertEqual(outcome.code, 1, outcome.stderr)

    def test_compare_times_nothing_that_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            outcome = halocline(
                "compare", "--config", CORRECTNESS, "--inject", "flip", "--output", path, ranks=2
            )
            self.assertEqual((outcome.code, len(outcome.ours)), (1, len(METHODS) + len(VENDORS)), outcome.stderr)
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.assertFalse(record["verified"])
                self.assertIsNone(record["phases"]["total"])

    def test_nothing_to_spoil(self):
        outcome = halocline("run", "--local", "8", "8", "8", "--periodic", "false", "--inject", "flip")
        self.assert_refused("inject", outcome)


class Compare(Run):
    def test_table_and_records(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            outcome = halocline("compare", "--config", CORRECTNESS, "--output", path, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            for method in METHODS:
                self.assertRegex(outcome.stdout, rf"(?m)^{method}( \(shared\))? +yes .*[0-9]x$")
            for method in VENDORS:
                self.assertRegex(outcome.stdout, rf"(?m)^{method}, private memory +yes .*[0-9]x$")
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        in_window = [record["method"] for record in records if record["storage"] == "shared-window"]
        self.assertEqual(in_window, list(METHODS))
        in_private_memory = [record["method"] for record in records if record["storage"] == "private"]
        self.assertEqual(in_private_memory, list(VENDORS))
        baselines = {record["baseline"] for record in records}
        self.assertEqual(len(baselines), 1)
        for record in records:
            self.assertTrue(record["verified"])
            self.assertEqual(len(record["samples_s"]["total"]), record["iterations"])
            self.assertIn(record["baseline"], VENDORS)
            if (record["method"], record["storage"]) == (record["baseline"], record["baseline_storage"]):
                self.assertEqual(record["ratio_to_baseline"], 1)

    def test_the_output_fits_the_terminal(self):
        """Checks that columns are left out, but not the ratios."""
        for columns in (60, 80, 100):
            with self.subTest(columns=columns), unittest.mock.patch.dict(os.environ, COLUMNS=str(columns)):
                outcome = halocline("compare", "--config", CORRECTNESS, "--shape", "direct,axes", ranks=2)
                self.assertEqual(outcome.code, 0, outcome.stderr)
                self.assertLessEqual(max(map(len, outcome.stdout.splitlines())), columns)
                self.assertRegex(outcome.stdout, r"(?m)^vendor-alltoallw, axes, private memory +.*[0-9]x")

    def test_complex_values_have_two_parts(self):
        halo = ("--config", CORRECTNESS, "--local", "8", "8", "8", "--layout", "aos")
        bytes_of = {}
        for element, value_bytes in (("double", 8), ("complex", 16), ("complex-float", 8)):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "out.jsonl"
                outcome = halocline("compare", *halo, "--element", element, "--output", path, ranks=2)
                self.assertEqual(outcome.code, 0, outcome.stderr)
                records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for record in records:
                self.assertTrue(record["verified"])
                self.assertEqual((record["element_bytes"], record["complex"]), (value_bytes, element != "double"))
            bytes_of[element] = records[0]["bytes_to_others"]
        self.assertEqual(bytes_of["complex"], 2 * bytes_of["double"])
        self.assertEqual(bytes_of["complex-float"], bytes_of["double"])

    def test_files_of_a_run_hold_no_complex_values(self):
        for arguments in (("--checkpoint-every", "1"), ("--series-every", "1"), ("--restart", "here")):
            outcome = halocline("run", "--local", "8", "8", "8", "--element", "complex", *arguments)
            self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)

    def test_shapes_are_rows_and_messages_are_noted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.jsonl"
            arguments = ("--shape", "direct,axes", "--neighbors", "18", "--messages", "region")
            methods = ("p2p", "alltoallv", "vendor-p2p", "vendor-pack")
            outcome = halocline(
                "compare", "--config", CORRECTNESS, *arguments, "--methods", ",".join(methods), "--output", path, ranks=2
            )
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(outcome.stdout, r"(?m)^alltoallv; alltoallv, axes; vendor-pack; [^.]*one\smessage\sper\spartner")
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        rows = [(record["method"], record["shape"]) for record in records]
        self.assertEqual(rows, list(itertools.product(methods, ("direct", "axes"))))
        for record in records:
            several = record["method"] in ("p2p", "vendor-p2p")
            self.assertEqual(record["neighbors"], 18)
            self.assertEqual(record["messages_per"], "region" if several else "partner")
            self.assertEqual(len(record["notes"]), 0 if several else 1)
            label = record["method"] + (", axes" if record["shape"] == "axes" else "")
            # The domain is split in x. The other rank gets 2 x 5 of 18 regions, or 2 slabs.
            messages = (10 if record["shape"] == "direct" else 2) if several else 1
            self.assertEqual(record["messages"], messages)
            self.assertRegex(outcome.stdout, rf"(?m)^{label} +yes .*x +{messages}$")
            is_baseline = (record["method"], record["shape"]) == (record["baseline"], record["baseline_shape"])
            self.assertEqual(is_baseline, record["ratio_to_baseline"] == 1)

    def test_dry_run_counts_the_messages_of_each_shape(self):
        outcome = halocline("compare", "--shape", "axes,direct", "--messages", "region", "--dry-run", ranks=4)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"(?s)shape axes\n.* 48 +2 +4 +3\.44 MiB.*shape direct\n.* 208 +3 +24 +3\.44 MiB")
        outcome = halocline("run", "--stencil", "heat3", "--shape", "axes,direct", "--dry-run", ranks=4)
        self.assertRegex(outcome.stdout, r" 6 neighbours\n")
        self.assertRegex(outcome.stdout, r"shape axes\n(.*\n){2} +0 +64 x 64 x 64 +48 +2 +3\.00 MiB +1\.50 MiB")
        self.assertNotIn("shape direct", outcome.stdout)

    def test_paper_size_moves_the_paper_s_bytes(self):
        files = ("--checkpoint-every", "5", "--snapshot-every", "4", "--snapshot-fields", "ux,uy", "--steps", "10")
        outcome = halocline("run", "--physics", "mhd", "--local", "16", "16", "16", *files, "--dry-run", ranks=2)
        self.assertIn("\ndisk: 512 KiB a checkpoint, of which two are kept, and a third one while it is written\n", outcome.stdout)
        self.assertIn("\ndisk: 128 KiB a snapshot, 384 KiB for 3 snapshots from step 0 on\n", outcome.stdout)
        outcome = halocline("compare", "--local", "256", "256", "256", "--dry-run", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        # Each rank moves 77,280,768 bytes (73.7 MiB) per exchange. On two ranks, split in z, two
        # thirds stay.
        self.assertRegex(outcome.stdout, r"256 x 256 x 256 +208 +1 +25\.1 MiB +48\.6 MiB")

    def test_nothing_is_left_to_mpi_to_pack(self):
        for describe in ("hindexed", "struct"):
            outcome = halocline("compare", "--config", CORRECTNESS, "--describe", describe, ranks=2)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertNotIn("packed by MPI", outcome.stdout)

    def test_describing_and_packing_cost_no_correctness_in_open_domains(self):
        outcome = halocline("compare", "--config", CORRECTNESS, "--periodic", "false", ranks=4)
        self.assertEqual(outcome.code, 0, outcome.stderr)


class BadSizes(Run):
    def test_what_does_not_fit_is_refused_by_name(self):
        cases = (
            ("radius", 1, ("--local", "8", "8", "2")),
            ("radius", 2, ("--local", "8", "8", "8", "--radius", "9")),
            ("radius", 1, ("--local", "8", "8", "8", "--radius", "2")),
            ("radius", 8, ("--global", "5", "5", "5")),
            ("more ranks than points", 8, ("--global", "1", "1", "1", "--radius", "1", "--stencil", "point26")),
            ("decomposition", 2, ("--decomposition", "1", "1", "3")),
            ("neighbors", 2, ("--neighbors", "18")),
            ("neighbors", 1, ("--neighbors", "6", "--stencil", "heat9")),
            ("layout aos", 2, ("--messages", "field", "--layout", "aos")),
            ("local", 1, ("--local", "100000000", "8", "8")),
            ("global", 2, ("--global", "8", "8", "9000000000")),
            ("memory", 2, ("--local", "40000", "40000", "40000")),
            ("memory", 1, ("--local", "4000", "4000", "4000", "--fields", "1000")),
            ("decomposition", 2, ("--decomposition", "2147483647", "2147483647", "2147483647")),
            ("substeps", 1, ("--local", "8", "8", "8", "--steps", "2147483647", "--stages", "3")),
            ("swap", 1, ("--local", "3", "3", "3", "--layout", "aos", "--inject", "swap")),
        )
        for (names, ranks, arguments), outcome in several(lambda case: halocline("run", *case[2], ranks=case[1]), cases):
            with self.subTest(arguments=arguments, ranks=ranks):
                self.assert_refused(names, outcome)

    def test_dry_run_allocates_nothing(self):
        outcome = halocline("run", "--local", "20000", "20000", "20000", "--dry-run", ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("nothing was allocated", outcome.stdout)
        self.assertIn("TOO MUCH", outcome.stdout)

    def test_dry_run_counts_padding_and_bookkeeping(self):
        # There are 50,000 arrays of 27 points. Two sets have arrays padded to 4 KiB and whole huge pages; two plans have
        # 1.3 million jobs each.
        outcome = halocline(
            "run", "--local", "1", "1", "1", "--radius", "1", "--stencil", "point26", "--fields", "50000", "--dry-run"
        )
        self.assertRegex(outcome.stdout, r"memory per rank: 412 MiB for fields, 1\.98 GiB for messages")

    def test_a_full_disk_keeps_nobody_from_the_results(self):
        for arguments in (("run", "--steps", "2"), ("compare", "--iterations", "2")):
            outcome = halocline(*arguments, "--local", "8", "8", "8", "--output", "/dev/full", ranks=2)
            self.assertEqual((outcome.code, len(outcome.ours)), (3, 1), outcome.stderr)
            self.assertRegex(outcome.stdout, r"state hash: 0x[0-9a-f]{16}\n\Z" if arguments[0] == "run" else r"(?m)^p2p +yes ")

    def test_lost_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full, own_session() as environment:
            code = subprocess.run(
                [BINARY, "run", "--local", "8", "8", "8", "--quiet"],
                env=environment,
                stdout=full,
                stderr=subprocess.DEVNULL,
                timeout=60,
            ).returncode
        self.assertEqual(code, 3)


def with_shared_memory(size, files=False):
    """Returns a command that runs a command with `size` memory in /dev/shm, and without memory files unless `files`."""
    preload = "" if files else f"LD_PRELOAD={os.environ['HALOCLINE_NO_MEMORY_FILES']}"
    return ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec env {preload} "$@"', "little")


class SharedMemory(Run):
    def setUp(self):
        tried = subprocess.run([*with_shared_memory("64k"), "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no mount namespaces here: {tried.stderr.strip()}")

    def halocline(self, subcommand, *arguments):
        number = "--steps" if subcommand == "run" else "--iterations"
        return halocline(subcommand, *arguments, "--local", "16", "16", "16", number, "2", ranks=2, inside=with_shared_memory("64k"))

    def test_one_set_of_fields_alone_is_not_enough(self):
        # A set of two ranks has 11.9 MiB, and 10 are left to MPI. Open MPI would hang if nearly all
        # of the memory was asked for.
        sizes = ("--local", "40", "40", "40", "--steps", "2")
        cases = list(itertools.product(("13m", "30m"), (("shared",), ("auto",), ("shared", "--dry-run"))))
        run = lambda case: halocline("run", *sizes, "--methods", *case[1], ranks=2, inside=with_shared_memory(case[0]))
        says = {("auto",): "exchanged by auto (p2p)", ("shared", "--dry-run"): "in /dev/shm: TOO MUCH"}
        for (size, method), outcome in several(run, cases):
            with self.subTest(size=size, method=method):
                self.assertEqual(outcome.code, 0 if method in says else 3, outcome.stderr)
                self.assertIn(says.get(method, ""), outcome.stdout)
        self.assertEqual(halocline("run", *sizes, "--methods", "shared", ranks=1, inside=with_shared_memory("64k")).code, 0)

    def test_who_asks_for_it_is_told_what_to_do(self):
        for subcommand in ("run", "compare"):
            outcome = self.halocline(subcommand, "--methods", "shared")
            self.assertEqual((outcome.code, len(outcome.ours)), (3, 1), outcome.stderr)
            self.assertRegex(outcome.ours[0], r"no shared memory.*/dev/shm has 6[0-9] KiB.*such as p2p")

    def test_who_does_not_ask_gets_the_rest(self):
        outcome = self.halocline("compare")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("left out: shared; auto is p2p: no shared memory", outcome.stdout.replace("; left", "\nleft"))
        self.assertRegex(outcome.stdout, r"(?m)^auto \(p2p\) +yes ")
        self.assertNotIn("private memory", outcome.stdout)
        outcome = self.halocline("run", "--methods", "auto")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("exchanged by auto (p2p)", outcome.stdout)
        self.assertIn("\nauto is p2p: no shared memory", outcome.stdout)

    def test_memory_files_do_not_need_dev_shm(self):
        sizes = ("run", "--local", "40", "40", "40", "--steps", "2", "--quiet", "--methods")
        outcome = halocline(*sizes, "shared", ranks=2, inside=with_shared_memory("64k", files=True))
        self.assertEqual((outcome.code, outcome.stdout), (0, halocline(*sizes, "p2p", ranks=2).stdout), outcome.stderr)


class Pages(Run):
    def record(self, *arguments, **how):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.jsonl")
            outcome = halocline("run", "--local", "40", "40", "40", "--steps", "2", "--output", path, *arguments, ranks=2, **how)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            with open(path, encoding="utf-8") as file:
                return outcome, json.loads(file.read())

    def test_are_told_in_records(self):
        for method, pages in itertools.product(("shared", "p2p"), ("huge", "small")):
            with self.subTest(method=method, pages=pages):
                outcome, record = self.record("--methods", method, "--pages", pages)
                self.assertEqual(record["pages"], pages)
                self.assertEqual(record["shared_memory"], "memory-file" if method == "shared" else None)
                self.assertIn(f"state hash: {record['state_hash']}", outcome.stdout)
                if pages == "small":
                    self.assertEqual(record["on_huge_pages"], 0)
                elif "fields on small pages" not in outcome.stdout:
                    self.assertGreater(record["on_huge_pages"], 0.5)

    def test_without_memory_files_there_are_windows_of_mpi(self):
        outcome, record = self.record("--methods", "shared", inside=("env", f"LD_PRELOAD={os.environ['HALOCLINE_NO_MEMORY_FILES']}"))
        self.assertEqual((record["storage"], record["shared_memory"]), ("shared-window", "mpi-window"))
        self.assertIn("shared memory is a window of MPI: memfd_create: Function not implemented", outcome.stdout.replace("\n", " "))

    def test_ranks_that_see_other_processes_get_windows_of_mpi(self):
        apart = ("unshare", "--pid", "--fork", "--mount-proc")
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespaces of processes here")
        arguments = ["run", "--local", "16", "16", "16", "--steps", "2", "--methods", "shared"]
        # Only one rank is apart: Open MPI crashes if two ranks have the same number of a process.
        command = [MPIEXEC, "-n", "1", BINARY, *arguments, ":", "-n", "1", *apart, BINARY, *arguments]
        with own_session() as environment:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("shared memory is a window of MPI: /proc/", done.stdout)
        self.assertIn(halocline(*arguments[:-1], "p2p", "--quiet", ranks=2).stdout, done.stdout)

    def test_a_system_without_huge_pages_says_so_once(self):
        with tempfile.TemporaryDirectory() as folder:
            never = os.path.join(folder, "never")
            with open(never, "w", encoding="utf-8") as file:
                file.write("always madvise [never]\n")
            setting = "/sys/kernel/mm/transparent_hugepage/enabled"
            inside = ("unshare", "--mount", "sh", "-c", f'mount --bind {never} {setting} && exec "$@"', "without")
            if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
                self.skipTest("no mount namespaces here")
            for method in "shared", "p2p":
                outcome, record = self.record("--methods", method, inside=inside)
                self.assertEqual(record["on_huge_pages"], 0)
                self.assertEqual(outcome.stdout.count("fields on small pages: " + setting + " is never\n"), 1)

    def test_two_jobs_at_once_do_not_meet(self):
        arguments = ("run", "--local", "40", "40", "40", "--steps", "5", "--quiet", "--methods", "shared")
        outcomes = [outcome for _, outcome in several(lambda _: halocline(*arguments, ranks=2), range(3))]
        self.assertEqual({(one.code, one.stdout) for one in outcomes}, {(0, halocline(*arguments[:-1], "p2p", ranks=2).stdout)})

    def test_a_limit_of_memory_is_one_line(self):
        for group, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            mine = os.path.join(group, f"halocline-{os.getpid()}")
            try:
                os.mkdir(mine)
            except OSError:
                continue
            self.addCleanup(os.rmdir, mine)
            try:
                with open(os.path.join(mine, name), "w", encoding="utf-8") as file:
                    file.write(str(300 << 20))
            except OSError:
                continue
            inside = ("sh", "-c", f'echo $$ >{mine}/cgroup.procs && exec "$@"', "limited")
            for method in "shared", "p2p":
                outcome = halocline("run", "--local", "128", "128", "128", "--steps", "1", "--methods", method, ranks=2, inside=inside)
                self.assertEqual((outcome.code, len(outcome.ours)), (2, 1), outcome.stderr)
                self.assertRegex(outcome.ours[0], r"not enough memory \(a node needs .* and has 2\d\d MiB available\)")
            return
        self.skipTest("no group of processes can be made here")

    def test_a_limit_of_addresses_is_one_line(self):
        for gib, method, code, message in (
            (1, "p2p", 2, "raise ulimit -v, or use a smaller local or global size, fewer fields"),
            (1, "shared", 2, "raise ulimit -v, or use a smaller local or global size, fewer fields"),
            (2, "shared", 3, "raise ulimit -v, or use smaller fields"),
        ):
            inside = ("sh", "-c", f'ulimit -v {gib << 20} && exec "$@"', "limited")
            run = ("run", "--local", "256", "256", "128", "--steps", "1", "--methods", method)
            outcome = halocline(*run, ranks=2, inside=inside)
            self.assertEqual((outcome.code, len(outcome.ours)), (code, 1), outcome.stderr)
            self.assertIn(message, outcome.ours[0])
            outcome = halocline(*run, "--dry-run", ranks=2, inside=inside)
            self.assertEqual(outcome.code, 0, outcome.stderr)
            self.assertRegex(outcome.stdout, r"addresses: .*a rank needs .*, and ulimit -v leaves .*: TOO MUCH")

    def test_no_limit_of_addresses_makes_ranks_wait(self):
        # Open MPI hangs in a message for which it has no addresses. Its threads took them.
        for mib in 64, 76, 117, 127, 146, 166, 176, 195, 205:
            with self.subTest(mib=mib):
                limited = ("sh", "-c", f'ulimit -v {mib << 10} && exec "$@"', "limited")
                outcome = halocline("compare", "--local", "32", "32", "32", "--iterations", "1", ranks=2, program=limited)
                self.assertEqual(len(outcome.ours), 0 if outcome.code == 0 else 1, outcome.stderr)
                if outcome.code != 0:
                    self.assertRegex(outcome.ours[0], "raise ulimit -v")


if __name__ == "__main__":
    unittest.main()
