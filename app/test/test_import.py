# SPDX-License-Identifier: BSD-3-Clause
"""Tests results/import_astaroth_conf.py: what it takes over from a configuration of Astaroth, and that the program runs
the result."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from halocline_program import halocline

SCRIPT = pathlib.Path(os.environ["HALOCLINE_SOURCE"]) / "results" / "import_astaroth_conf.py"
SAMPLE = """
/* Mesh
 * AC_nx = 1 */
AC_nx = 16
AC_ny = 12
AC_nz = 20   // points
AC_dsx = 0.04908738521
AC_dsy = 0.04908738521
AC_dsz = 0.04908738521
AC_max_steps = 2
AC_save_steps = 10
// AC_eta = 7
AC_bin_save_t = 1e666
AC_cdt = 0.4
AC_cdtv = 0.3
AC_nu_visc  = 5e-3
AC_cs_sound = 1.0
AC_eta = 5e-3
AC_relhel = 0.5
AC_forcing_magnitude = 1e-5
AC_kmin              = 0.8
AC_kmax              = 1.2
AC_gamma = 1.6
AC_lnT0 = 0.0
AC_bc_type_top_x = BOUNDCOND_PERIODIC
AC_ampl_uu = 1.0
"""


class ImportOfAstaroth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "astaroth.conf"

    def convert(self, text):
        self.path.write_text(text, encoding="utf-8")
        return subprocess.run([SCRIPT, self.path], capture_output=True, text=True, timeout=60)

    def test_takes_over_what_it_knows(self):
        found = self.convert(SAMPLE)
        self.assertEqual(found.returncode, 0, found.stderr)
        lines = [line.split("   #")[0] for line in found.stdout.split("\n")]
        for line in ("global = [16, 12, 20]", "steps = 2", "spacing = 0.04908738521", "nu = 0.005", "eta = 0.005", "t0 = 1.0",
                     'initial = "explosion"', "amplitude = 1.0", "forcing-helicity = 0.5", "forcing = 1e-05", "gamma = 1.6"):
            self.assertIn(line, lines)
        left = "AC_save_steps = 10, AC_bin_save_t = 1e666, AC_cdtv = 0.3, AC_bc_type_top_x = BOUNDCOND_PERIODIC"
        self.assertEqual(found.stderr, f"import_astaroth_conf.py: not taken over: {left}\n")
        config = self.path.with_suffix(".toml")
        config.write_text(found.stdout, encoding="utf-8")
        outcome = halocline("run", "--config", config, ranks=2)
        self.assertEqual(outcome.code, 0, outcome.stderr)
        self.assertIn("every value is finite after 2 steps", " ".join(outcome.stdout.split()))

    def test_reads_lists(self):
        found = self.convert("AC_ngrid = {32, 16,16}\nAC_ds = {0.1,0.1,0.1}\nAC_init_type = INIT_TYPE_OTHER\n")
        self.assertIn("global = [32, 16, 16]", found.stdout)
        self.assertNotIn("initial", found.stdout)
        self.assertIn("not taken over: AC_init_type = INIT_TYPE_OTHER", found.stderr)

    def test_refuses_what_it_cannot_read(self):
        mesh = "AC_nx = 8\nAC_ny = 8\nAC_nz = 8\n"
        for text, words in (("", "has no parameters"), ("hello\n", 'no "AC_name = value" (hello)'), ("AC_eta = 1\n", "has no mesh (AC_nx"),
                            (mesh, "has no mesh (AC_dsx"), (mesh + "AC_ds = {1,1,2}\n", "unequal spacings"),
                            (mesh.replace("8", "8.5") + "AC_ds = {1,1,1}\n", "a mesh of [8.5, 8.5, 8.5] points"),
                            (mesh + "AC_ds = {1,1,1}\nAC_nu_visc = abc\n", "AC_nu_visc is no number (abc)"),
                            (mesh + "AC_ds = {1,1,1}\nAC_nu_visc = 1, nan\n", "AC_nu_visc is no number (1, nan)"),
                            (mesh + "AC_ds = {1,1,1}\nAC_max_steps = 10.7\n", "has 10.7 steps (AC_max_steps)")):
            with self.subTest(text=text):
                found = self.convert(text)
                self.assertEqual((found.returncode, found.stdout, found.stderr.count("\n")), (2, "", 1))
                self.assertIn(words, found.stderr)


if __name__ == "__main__":
    unittest.main()
