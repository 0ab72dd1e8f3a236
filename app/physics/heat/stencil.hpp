// SPDX-License-Identifier: BSD-3-Clause
// Describes the stencils as numbers: lines, weights, coefficients, and the exact factor by which
// they damp a plane wave.
#pragma once

#include <array>
#include <span>

#include "comm/halo/direction.hpp"
#include "domain.hpp"

namespace halocline::app {

/// Holds the weights of the second differences along the axes, the face diagonals and the body
/// diagonals. They are consistent with the Laplacian because axis + 4 face + 4 body = 1.
struct LineWeights {
  double axis, face, body;
};

/// Describes an explicit step u += kappa dt L u, with L = sum over lines of weight * D^2. D^2 is
/// the second difference along a line, of half width R, not divided by the line's own length:
///   (coefficients[0] u(0) + sum_k coefficients[k] (u(k) + u(-k))) / h^2
struct StencilSpec {
  LineWeights weights;
  std::span<const double> coefficients;  ///< R + 1 numbers
  int lines;                             ///< 3, 9 or 13: the stencil uses the first lines of kLines
  int radius() const { return static_cast<int>(coefficients.size()) - 1; }
};

/// Lists one of each pair of opposite directions (x, y, z): 3 axes, 6 face diagonals, 4 body
/// diagonals.
inline constexpr std::array<comm::Int3, 13> kLines{{{1, 0, 0},
                                                    {0, 1, 0},
                                                    {0, 0, 1},
                                                    {1, 1, 0},
                                                    {1, -1, 0},
                                                    {1, 0, 1},
                                                    {1, 0, -1},
                                                    {0, 1, 1},
                                                    {0, 1, -1},
                                                    {1, 1, 1},
                                                    {1, 1, -1},
                                                    {1, -1, 1},
                                                    {1, -1, -1}}};

/// Returns the numbers of a stencil.
/// - heat13, heat9, heat3: the sixth-order difference (-49/18; 3/2, -3/20, 1/90) along 13, 9 or 3
/// lines.
/// - point26: the second-order difference (-2; 1) along 13 lines, the 27-point stencil of [PEA21]
/// section 6.4.
StencilSpec stencil_spec(Stencil stencil);

/// Returns the weight of line number `line` of kLines.
double line_weight(const StencilSpec& spec, int line);

/// Returns the directions whose ghosts some owned point reads, whatever the extents are. They are
/// the directions of the lines, and those of the faces and edges that a diagonal line may cross.
comm::DirectionSet needed_neighbors(const StencilSpec& spec);

/// Describes a wave along one axis.
struct AxisWave {
  /// Tells if the wave is part of a plane wave, or a cosine or a sine about `centre`.
  enum class Form { travelling, even, odd };
  std::int64_t number;  ///< whole waves in a period
  std::int64_t period;  ///< points
  Form form = Form::travelling;
  std::int64_t centre = 0;  ///< global coordinate
};

/// Describes the product of a plane wave exp(2 pi i (m . x / N + phase)), along the axes on which
/// it travels, and of an even or odd wave along each other axis. Real values are its real part. All
/// are exact eigenvectors of every stencil here, as a stencil weighs lines and their mirror images
/// alike.
struct Wave {
  std::array<AxisWave, 3> along;
  double phase;  ///< turns
};

/// Returns the wave of a field, which suits the boundaries of the domain. Each of eight fields has
/// its own numbers of waves; the ninth has those of the first.
Wave field_wave(int field, const Domain& domain);

/// Tells if field_wave() is the exact solution: no open side is fixed.
bool has_exact_wave(const Domain& domain);

/// Returns kappa dt / h^2 of one substep. The value is 0.1 / stages, or less for many steps on few
/// points. Then the fastest decaying wave keeps about half of its amplitude, so the exact solution
/// stays a test. Stable for all stencils here (largest eigenvalue of heat3: 18.2, of heat13: 13.1).
double choose_diffusion_number(const StencilSpec& spec, const Domain& domain, std::int64_t substeps,
                               int stages);

/// Returns the factor by which one substep of `diffusion_number` multiplies the amplitude of
/// `wave`.
double damping(const StencilSpec& spec, const Wave& wave, double diffusion_number);

}  // namespace halocline::app
