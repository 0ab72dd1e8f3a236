// SPDX-License-Identifier: BSD-3-Clause
// Holds times that were measured on a machine, to predict transfers of packed bytes: the system
// model of [PEA21 sections 4 and 6.3]. Reads and writes its file.
//
// Best peer: [PEA21]'s file holds four curves and four pack tables over size and block length at
// one stride. It does not name its machine. Here stride, messages at once and both paths are
// measured as well. A model says what is missing, and the model of another machine is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtype/model/time_table.hpp"

namespace halocline::dtype {

/// Describes the machine and the program that measured a model.
struct ModelProvenance {
  std::string time;  ///< time of the measurement: UTC, ISO 8601
  std::string cpu;
  std::string gpu;     ///< empty if there is none
  std::string driver;  ///< version of the GPU's driver
  std::string mpi;     ///< first line of the MPI library's version
  std::string host;
  std::string git;        ///< revision of the program that measured
  bool emulated = false;  ///< the device was emulated on the host
  bool operator==(const ModelProvenance&) const = default;
};

/// Holds the times of messages between two ranks of one node, and of two nodes. Times are one way:
/// half a ping-pong.
struct MessagePaths {
  std::optional<MessageTimes> on_node, off_node;
  bool operator==(const MessagePaths&) const = default;
};

/// Holds the times of packing and unpacking by one executor, for one place of the packed bytes.
struct PackTimes {
  std::optional<PackTable> pack, unpack;
  bool operator==(const PackTimes&) const = default;
};

/// Holds the times of messages of equal blocks with gaps in host memory, one way. A grid point
/// stands for blocks at least two block lengths apart.
struct BlockMessages {
  std::optional<PackTable> packed;  ///< packed by Halocline, sent as packed bytes, and unpacked
  std::optional<PackTable> typed;   ///< sent and received by MPI as derived datatypes
  bool operator==(const BlockMessages&) const = default;
};
/// Holds the times of such messages by traffic. One way, each travels alone: half a ping-pong. Both
/// ways, another message travels the other way at the same time, as in the exchange of a halo.
struct BlockTraffic {
  BlockMessages one_way, both_ways;
  bool operator==(const BlockTraffic&) const = default;
};
/// Holds the times of such messages by what the datatype says of its blocks. An MPI takes longer
/// for a list of blocks than for as many blocks of a vector.
struct BlockTimes {
  BlockTraffic strided;  ///< blocks of vectors and subarrays
  BlockTraffic listed;   ///< blocks of indexed types and structs, at irregular distances
  bool operator==(const BlockTimes&) const = default;
};

/// Holds all times that were measured on a machine; nullopt if a part was not. Times of work on a
/// stream run from the call, with the stream idle, to the end of a synchronization. They are stored
/// less synchronize_seconds and, for kernels, less launch_seconds. So times of work that shares a
/// launch or a synchronization can be added up.
struct SystemModel {
  ModelProvenance provenance;

  std::optional<double> launch_seconds;       ///< launch of a kernel that does nothing
  std::optional<double> synchronize_seconds;  ///< synchronization with a stream that has no work

  /// Is the rate of a node, one way: all that its ranks together send to other nodes, if they send
  /// enough. It limits the node as the bandwidth of a rank limits that rank: max-rate [GOS16].
  std::optional<double> injection_bytes_per_second;

  MessagePaths host_messages;           ///< [PEA21] T_cpu-cpu: between pinned host memory
  MessagePaths device_messages;         ///< [PEA21] T_gpu-gpu: between device memory
  std::optional<Curve> device_to_host;  ///< [PEA21] T_d2h: to pinned host memory
  std::optional<Curve> host_to_device;  ///< [PEA21] T_h2d: from pinned host memory
  PackTimes device_packing;             ///< [PEA21] T_gpu-pack, -unpack: kernels, device memory
  PackTimes mapped_packing;  ///< [PEA21] T_host-pack, -unpack: kernels, mapped pinned host memory
  PackTimes host_packing;    ///< the host packer, without a stream
  BlockTimes blocks_on_node, blocks_off_node;  ///< between ranks of one node, and of two nodes

  /// Lists the parts that were cut short, one entry each, with the bytes reached and the bytes
  /// wanted.
  std::vector<std::string> incomplete;
  /// Lists the points whose samples did not agree, or contradicted those of other points, to the
  /// end.
  std::vector<std::string> noisy;

  bool operator==(const SystemModel&) const = default;
};

/// Returns the points that only a disturbed measurement explains, in words, one entry each. Such a
/// point takes over 10 times the time of its neighbour of more bytes. Or it takes over 40 times the
/// time that its neighbour of fewer bytes and the ratio of bytes explain. O(size).
std::vector<std::string> odd_points(const SystemModel& model);

/// Returns one line for the user of a model: its flaws and the remedy; empty if there are none.
/// Flaws are parts that are incomplete or end below kBandwidthBytes, noisy points, and
/// odd_points(). O(size).
std::string flaws_of(const SystemModel& model, const std::string& path);

/// Returns the model as a JSON object of schema halocline-model/1. Bytes and counts are integers,
/// times are seconds. Keys of parts that were not measured are absent. "incomplete" and "noisy" are
/// absent if they are empty. O(size).
std::string to_json(const SystemModel& model);

/// Returns the model of a JSON object that to_json() made; its numbers are the same bit by bit.
/// O(size).
///
/// \throws ConfigError that names `source` and the key for anything else: no JSON, another schema,
///   unknown or missing keys, points that do not ascend, times that are not positive, sizes that do
///   not fit.
SystemModel parse_model(std::string_view json, const std::string& source);

/// Reads a model from a file. Throws ConfigError if the file holds no model, or if there is no
/// file. Callers that can do without a model look first.
SystemModel read_model(const std::string& path);

/// Writes the file whole or not at all: writes a new file beside it, which then takes its name.
/// Makes the folder if there is none. After an error, an older file is as it was.
///
/// \throws ConfigError if the path cannot be written to, or the model could not be read again.
/// \throws EnvironmentError if the disk is full or fails.
void write_model(const SystemModel& model, const std::string& path);

/// Checks that write_model() can write to `path`, so that nobody measures in vain. Throws the error
/// of write_model() if it cannot. Makes the folder if there is none, and leaves nothing else
/// behind.
void require_writable_model(const std::string& path);

/// Returns the differences between the machine of `model` and this machine: names and values of
/// cpu, gpu, driver and mpi. Empty if there are none. The host may differ. Throws ConfigError that
/// lists the differences if there are any, unless `force`.
std::string require_match(const ModelProvenance& model, const ModelProvenance& machine, bool force);

/// Returns the path of this user's model: $HALOCLINE_MODEL, else
/// $XDG_CONFIG_HOME/halocline/model.json, else $HOME/.config/halocline/model.json. Empty variables
/// count as not set, and so does an XDG_CONFIG_HOME that is not absolute. Throws ConfigError if
/// none is set.
std::string default_model_path();

}  // namespace halocline::dtype
