// SPDX-License-Identifier: BSD-3-Clause
#include "dtype/model/system_model.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/error.hpp"
#include "support/text_file.hpp"

namespace halocline::dtype {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "halocline-model/1";

constexpr std::array kTexts{
    std::pair{"time", &ModelProvenance::time}, std::pair{"cpu", &ModelProvenance::cpu},
    std::pair{"gpu", &ModelProvenance::gpu},   std::pair{"driver", &ModelProvenance::driver},
    std::pair{"mpi", &ModelProvenance::mpi},   std::pair{"host", &ModelProvenance::host},
    std::pair{"git", &ModelProvenance::git}};
constexpr std::array kMachine{
    std::pair{"cpu", &ModelProvenance::cpu}, std::pair{"gpu", &ModelProvenance::gpu},
    std::pair{"driver", &ModelProvenance::driver}, std::pair{"mpi", &ModelProvenance::mpi}};
constexpr std::array kScalars{std::pair{"launch_seconds", &SystemModel::launch_seconds},
                              std::pair{"synchronize_seconds", &SystemModel::synchronize_seconds}};
constexpr std::array kFlaws{std::pair{"incomplete", &SystemModel::incomplete},
                            std::pair{"noisy", &SystemModel::noisy}};
constexpr double kMaxRate = 1e18;
constexpr const char* kInjection = "injection_bytes_per_second";
constexpr std::array kMessages{std::pair{"host", &SystemModel::host_messages},
                               std::pair{"device", &SystemModel::device_messages}};
constexpr std::array kPaths{std::pair{"on_node", &MessagePaths::on_node},
                            std::pair{"off_node", &MessagePaths::off_node}};
constexpr std::array kCopies{std::pair{"device_to_host", &SystemModel::device_to_host},
                             std::pair{"host_to_device", &SystemModel::host_to_device}};
constexpr std::array kPacking{std::pair{"device", &SystemModel::device_packing},
                              std::pair{"mapped", &SystemModel::mapped_packing},
                              std::pair{"host", &SystemModel::host_packing}};
constexpr std::array kDirections{std::pair{"pack", &PackTimes::pack},
                                 std::pair{"unpack", &PackTimes::unpack}};
constexpr std::array kBlockPlaces{std::pair{"on_node", &SystemModel::blocks_on_node},
                                  std::pair{"off_node", &SystemModel::blocks_off_node}};
constexpr std::array kBlockOrders{std::pair{"strided", &BlockTimes::strided},
                                  std::pair{"listed", &BlockTimes::listed}};
constexpr std::array kTraffic{std::pair{"one_way", &BlockTraffic::one_way},
                              std::pair{"both_ways", &BlockTraffic::both_ways}};
constexpr std::array kPackers{std::pair{"packed", &BlockMessages::packed},
                              std::pair{"typed", &BlockMessages::typed}};
constexpr std::array kAxes{std::pair{"bytes", &PackTable::Axes::bytes},
                           std::pair{"block_bytes", &PackTable::Axes::block_bytes},
                           std::pair{"stride_bytes", &PackTable::Axes::stride_bytes}};

// ---- To JSON

Json to_json(const Curve& curve) {
  return {{"bytes", curve.bytes()}, {"seconds", curve.seconds()}};
}

Json to_json(const MessageTimes& times) {
  Json out = Json::array();
  for (const auto& [messages, curve] : times.measured()) {
    Json entry = {{"messages", messages}};
    entry.update(to_json(curve));
    out.push_back(std::move(entry));
  }
  return out;
}

// Takes the next values off `values`, nested in arrays of these lengths.
Json nested(std::span<const double>& values, std::span<const std::size_t> lengths) {
  Json out = Json::array();
  for (std::size_t i = 0; i < lengths.front(); ++i) {
    if (lengths.size() > 1) {
      out.push_back(nested(values, lengths.subspan(1)));
    } else {
      out.push_back(values.front());
      values = values.subspan(1);
    }
  }
  return out;
}

Json to_json(const PackTable& table) {
  Json out;
  std::vector<std::size_t> lengths;
  for (const auto& [name, axis] : kAxes) {
    out[name] = table.axes().*axis;
    lengths.push_back((table.axes().*axis).size());
  }
  std::span values(table.seconds());
  out["seconds"] = nested(values, lengths);
  return out;
}

// ---- From JSON

// Is a value of the file that is read, with its key for messages.
class Value {
 public:
  Value(const Json& json, const std::string& file, std::string key)
      : json_(&json), file_(&file), key_(std::move(key)) {}

  std::string where() const { return *file_ + (key_.empty() ? "" : ": " + key_); }

  [[noreturn]] void refuse(const std::string& cause) const {
    throw ConfigError("system model cannot be used (" + where() + ": " + cause +
                      "): measure it again with 'halocline calibrate'");
  }

  const Json& object() const {
    if (!json_->is_object()) refuse("is not an object");
    return *json_;
  }
  Value member(const Json& json, const std::string& name) const {
    return {json, *file_, key_.empty() ? name : key_ + "." + name};
  }
  std::vector<Value> elements() const {
    if (!json_->is_array()) refuse("is not an array");
    std::vector<Value> out;
    for (const auto& json : *json_)
      out.emplace_back(json, *file_, key_ + "[" + std::to_string(out.size()) + "]");
    return out;
  }
  std::string text() const {
    if (!json_->is_string()) refuse("is not a string");
    return json_->get<std::string>();
  }
  bool boolean() const {
    if (!json_->is_boolean()) refuse("is not true or false");
    return json_->get<bool>();
  }
  double number() const {
    if (!json_->is_number()) refuse("is not a number");
    return json_->get<double>();
  }
  std::int64_t integer() const {
    if (!json_->is_number_integer()) refuse("is not an integer");
    return json_->get<std::int64_t>();
  }

 private:
  const Json* json_;
  const std::string* file_;
  std::string key_;
};

// Reads the members of an object by name. check_rest() refuses members that nobody asked for.
class Members {
 public:
  explicit Members(const Value& value) : value_(value), json_(value.object()) {}

  std::optional<Value> find(const std::string& name) {
    asked_.push_back(name);
    const auto found = json_.find(name);
    if (found == json_.end()) return std::nullopt;
    return value_.member(*found, name);
  }
  Value at(const std::string& name) {
    auto found = find(name);
    if (!found) value_.refuse("has no key \"" + name + "\"");
    return *std::move(found);
  }
  void check_rest() const {
    for (const auto& [name, json] : json_.items())
      if (std::find(asked_.begin(), asked_.end(), name) == asked_.end())
        value_.refuse("has the unknown key " + excerpt(Json(name).dump()));
  }

 private:
  const Value& value_;
  const Json& json_;
  std::vector<std::string> asked_;
};

std::vector<std::int64_t> integers(const Value& value) {
  std::vector<std::int64_t> out;
  for (const auto& element : value.elements()) out.push_back(element.integer());
  return out;
}

std::vector<std::string> texts(const Value& value) {
  std::vector<std::string> out;
  for (const auto& element : value.elements()) out.push_back(element.text());
  return out;
}

// Appends numbers that are nested in arrays of these lengths.
void append_nested(const Value& value, std::span<const std::size_t> lengths,
                   std::vector<double>& out) {
  if (lengths.empty()) {
    out.push_back(value.number());
    return;
  }
  const auto elements = value.elements();
  if (elements.size() != lengths.front())
    value.refuse("has " + std::to_string(elements.size()) + " values for " +
                 std::to_string(lengths.front()) + " points");
  for (const auto& element : elements) append_nested(element, lengths.subspan(1), out);
}

double seconds_of(const Value& value) {
  const auto seconds = value.number();
  if (!(seconds > 0 && seconds <= kMaxSeconds))
    value.refuse("is not a time above 0 s and up to 1e9 s");
  return seconds;
}

double rate_of(const Value& value) {
  const auto rate = value.number();
  if (!(rate > 0 && rate <= kMaxRate)) value.refuse("is not a rate above 0 and up to 1e18 B/s");
  return rate;
}

Curve curve_of(Members& members, const Value& value) {
  auto bytes = integers(members.at("bytes"));
  std::vector<double> seconds;
  append_nested(members.at("seconds"), std::array{bytes.size()}, seconds);
  members.check_rest();
  return {std::move(bytes), std::move(seconds), value.where()};
}

Curve curve_of(const Value& value) {
  Members members(value);
  return curve_of(members, value);
}

MessageTimes message_times_of(const Value& value) {
  std::vector<MessageTimes::AtOnce> measured;
  for (const auto& element : value.elements()) {
    Members members(element);
    const auto messages = members.at("messages").integer();
    measured.push_back({messages, curve_of(members, element)});
  }
  return {std::move(measured), value.where()};
}

PackTable pack_table_of(const Value& value) {
  Members members(value);
  PackTable::Axes axes;
  std::vector<std::size_t> lengths;
  for (const auto& [name, axis] : kAxes) {
    axes.*axis = integers(members.at(name));
    lengths.push_back((axes.*axis).size());
  }
  std::vector<double> seconds;
  append_nested(members.at("seconds"), lengths, seconds);
  members.check_rest();
  return {std::move(axes), std::move(seconds), value.where()};
}

// Reads the members that an object has into those of `out`. Refuses members that are not in
// `table`, but for one of older models.
template <class Whole, class Table, class Read>
void read_members(const Value& value, const Table& table, Read read, Whole& out,
                  const char* of_older_models = nullptr) {
  Members members(value);
  for (const auto& [name, member] : table)
    if (const auto found = members.find(name)) out.*member = read(*found);
  if (of_older_models != nullptr) members.find(of_older_models);
  members.check_rest();
}

template <class Whole, class Table, class Read>
Whole whole_of(const Value& value, const Table& table, Read read) {
  Whole out;
  read_members(value, table, read, out);
  return out;
}
MessagePaths message_paths_of(const Value& value) {
  return whole_of<MessagePaths>(value, kPaths, message_times_of);
}
PackTimes pack_times_of(const Value& value) {
  return whole_of<PackTimes>(value, kDirections, pack_table_of);
}
BlockMessages block_messages_of(const Value& value) {
  return whole_of<BlockMessages>(value, kPackers, pack_table_of);
}
BlockTraffic block_traffic_of(const Value& value) {
  return whole_of<BlockTraffic>(value, kTraffic, block_messages_of);
}
BlockTimes block_times_of(const Value& value) {
  return whole_of<BlockTimes>(value, kBlockOrders, block_traffic_of);
}

std::string name_of_blocks(const char* place, const char* order, const char* traffic,
                           const char* packer) {
  return std::string("messages of ") + order + " blocks " + place + ", " + traffic + ", " + packer;
}

// Calls f(place, order, traffic, packer, table) for each table of messages of blocks that was
// measured. The first four are names.
template <class F>
void for_block_messages(const SystemModel& model, F f) {
  for (const auto& [place, of_place] : kBlockPlaces)
    for (const auto& [order, of_order] : kBlockOrders)
      for (const auto& [traffic, of_traffic] : kTraffic)
        for (const auto& [packer, of_packer] : kPackers)
          if (const auto& table = model.*of_place.*of_order.*of_traffic.*of_packer)
            f(place, order, traffic, packer, *table);
}

ModelProvenance provenance_of(const Value& value) {
  Members members(value);
  ModelProvenance out;
  for (const auto& [name, member] : kTexts) out.*member = members.at(name).text();
  out.emulated = members.at("emulated").boolean();
  members.check_rest();
  return out;
}

Json parse_json(std::string_view text, const std::string& source) {
  const Json nothing;
  const Value whole(nothing, source, "");
  constexpr int kMostNested = 16;  // deeper than any model
  if (nests_deeper_than(text, kMostNested)) whole.refuse("is nested too deep");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    whole.refuse("no JSON from byte " + std::to_string(error.byte) + " on");
  } catch (const Json::out_of_range&) {
    whole.refuse("holds a number that is out of range");
  }
}

// ---- Points that only a disturbed measurement explains

// Limits for the time of a point, relative to a neighbour of more bytes (kOdd) or fewer bytes
// (kOddJump).
constexpr double kOdd = 10;
constexpr double kOddJump = 40;  // the end of a cache or TLB explains a factor of up to some 15
bool is_odd_beside_more(double seconds, double of_more) {
  return seconds > kOdd * of_more;
}
bool is_odd_beside_less(double seconds, double of_less, double times_as_much) {
  return seconds > kOddJump * of_less * times_as_much;
}

// Calls note(i) for each odd point along one axis; value(i) is the time of point i. Compares each
// point with the next point, and with the last point before it that is not odd.
template <class Value, class Note>
void find_odd(const std::vector<std::int64_t>& bytes, Value value, Note note) {
  std::optional<std::size_t> less;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool is_odd = (i + 1 < bytes.size() && is_odd_beside_more(value(i), value(i + 1))) ||
                        (less && is_odd_beside_less(value(i), value(*less),
                                                    static_cast<double>(bytes[i]) /
                                                        static_cast<double>(bytes[*less])));
    if (is_odd)
      note(i);
    else
      less = i;
  }
}

void find_odd(const std::string& name, const Curve& curve, std::vector<std::string>& out) {
  find_odd(
      curve.bytes(), [&](std::size_t i) { return curve.seconds()[i]; },
      [&](std::size_t i) { out.push_back(name + ": " + text_of_bytes(curve.bytes()[i])); });
}

void find_odd(const std::string& name, const PackTable& table, std::vector<std::string>& out) {
  const auto& [bytes, blocks, strides] = table.axes();
  const auto shapes = blocks.size() * strides.size();
  for (std::size_t shape = 0; shape < shapes; ++shape)
    find_odd(
        bytes, [&](std::size_t i) { return table.seconds()[i * shapes + shape]; },
        [&](std::size_t i) {
          out.push_back(name + ": " + text_of_bytes(bytes[i]) + " in blocks of " +
                        text_of_bytes(blocks[shape / strides.size()]) + ", " +
                        text_of_bytes(strides[shape % strides.size()]) + " apart");
        });
}

// Lists the parts that end below kBandwidthBytes, each with its last point. Serves models that do
// not list incomplete parts themselves.
std::vector<std::string> early_ends(const SystemModel& model) {
  std::vector<std::string> out;
  const auto check = [&](const std::string& name, std::int64_t last) {
    if (last < kBandwidthBytes) out.push_back(name + ": up to " + text_of_bytes(last));
  };
  for (const auto& [place, paths] : kMessages)
    for (const auto& [path, member] : kPaths)
      if (const auto& times = model.*paths.*member)
        check(std::string(place) + " messages " + path,
              times->measured().front().curve.bytes().back());
  for (const auto& [name, member] : kCopies)
    if (const auto& curve = model.*member)
      check(std::string("copies ") + name, curve->bytes().back());
  for (const auto& [place, times] : kPacking)
    for (const auto& [direction, member] : kDirections)
      if (const auto& table = model.*times.*member)
        check(std::string(place) + " " + direction, table->axes().bytes.back());
  for_block_messages(
      model, [&](auto place, auto order, auto traffic, auto packer, const PackTable& table) {
        check(name_of_blocks(place, order, traffic, packer), table.axes().bytes.back());
      });
  return out;
}

// Lists the first entries, and the number of further entries.
std::string list_of(const std::vector<std::string>& entries) {
  constexpr std::size_t kMost = 1;  // entries are long lines
  std::string out;
  for (std::size_t i = 0; i < std::min(entries.size(), kMost); ++i)
    out.append(out.empty() ? "" : ", ").append(entries[i]);
  if (entries.size() > kMost) out += " and " + std::to_string(entries.size() - kMost) + " more";
  return out;
}

// ---- Files

std::string message_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  constexpr std::array kOfThePath{EACCES, EPERM,  EROFS, ENOENT,      ENOTDIR,
                                  EISDIR, EEXIST, ELOOP, ENAMETOOLONG};
  const auto problem = "system model cannot be written (" + path + ": " + message_of(error) + "): ";
  if (std::find(kOfThePath.begin(), kOfThePath.end(), error) != kOfThePath.end())
    throw ConfigError(problem + "give a file in a folder that this user may write to");
  throw EnvironmentError(problem +
                         (error == ENOSPC || error == EDQUOT ? "free space there or " : "") +
                         "give another path");
}

// Writes a new file beside `path`, and removes it in the end unless commit() gave it that name.
class Replacement {
 public:
  explicit Replacement(const std::string& path) : path_(path) {
    // Other threads and hosts may write to the same place.
    for (int attempt = 0; descriptor_ < 0; ++attempt) {
      name_ = path + "." + std::to_string(getpid()) + "-" + std::to_string(attempt) + ".new";
      descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) fail_to_write(path_, errno);
    }
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!name_.empty()) unlink(name_.c_str());
  }

  void write(std::string_view text) const {
    while (!text.empty()) {
      const auto written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_to_write(path_, errno);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  // Gives the file its name, once everything is on the disk.
  void commit() {
    if (fsync(descriptor_) != 0) fail_to_write(path_, errno);
    if (close(std::exchange(descriptor_, -1)) != 0) fail_to_write(path_, errno);
    if (rename(name_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
    name_.clear();
  }

 private:
  std::string path_, name_;
  int descriptor_ = -1;
};

// Follows links from `path` to the file that they name, which need not exist. A rename would
// replace the link itself.
std::string behind_links(std::string path) {
  constexpr int kMostLinks = 40;  // the limit of Linux
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path, error); ++links) {
    if (links == kMostLinks) fail_to_write(path, ELOOP);
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) fail_to_write(path, error.value());
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

// Begins a file that takes the place of `name` once it is committed. Creates its folder.
Replacement begin_to_write(const std::string& name) {
  const auto path = behind_links(name);
  std::error_code error;
  const auto there = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(there)) fail_to_write(path, EISDIR);
  // A new file would take the place of a device or a pipe.
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    throw ConfigError("system model cannot be written (" + path +
                      ": not a regular file): give a file in a folder that this user may write to");
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) fail_to_write(path, error.value());
  }
  return Replacement(path);
}

// Returns the value of an environment variable, empty if it is not set.
std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<std::string> odd_points(const SystemModel& model) {
  std::vector<std::string> out;
  for (const auto& [place, paths] : kMessages)
    for (const auto& [path, member] : kPaths)
      if (const auto& times = model.*paths.*member)
        for (const auto& [messages, curve] : times->measured())
          find_odd(std::string(place) + " messages " + path + ", " + std::to_string(messages) +
                       " at once",
                   curve, out);
  for (const auto& [name, member] : kCopies)
    if (const auto& curve = model.*member) find_odd(std::string("copies ") + name, *curve, out);
  for (const auto& [place, times] : kPacking)
    for (const auto& [direction, member] : kDirections)
      if (const auto& table = model.*times.*member)
        find_odd(std::string(place) + " " + direction, *table, out);
  for_block_messages(
      model, [&](auto place, auto order, auto traffic, auto packer, const PackTable& table) {
        find_odd(name_of_blocks(place, order, traffic, packer), table, out);
      });
  return out;
}

std::string flaws_of(const SystemModel& model, const std::string& path) {
  std::string out;
  const auto add = [&](const std::string& what, const std::vector<std::string>& entries) {
    if (!entries.empty()) out.append(out.empty() ? "" : "; ").append(what + list_of(entries));
  };
  add("cut short: ", model.incomplete.empty() ? early_ends(model) : model.incomplete);
  add("noisy: ", model.noisy);
  add("over 10 times as slow as their neighbours: ", odd_points(model));
  if (out.empty()) return out;
  return "system model " + path + " is of a disturbed or short measurement (" + out +
         "): it is used; for better figures run 'halocline calibrate --model " + path +
         "' while nothing else runs";
}

std::string to_json(const SystemModel& model) {
  Json out;
  out["schema"] = kSchema;
  for (const auto& [name, member] : kTexts) out["provenance"][name] = model.provenance.*member;
  out["provenance"]["emulated"] = model.provenance.emulated;
  for (const auto& [name, member] : kScalars)
    if (const auto& seconds = model.*member) out[name] = *seconds;
  if (model.injection_bytes_per_second) out[kInjection] = *model.injection_bytes_per_second;
  for (const auto& [place, paths] : kMessages)
    for (const auto& [path, member] : kPaths)
      if (const auto& times = model.*paths.*member) out["messages"][place][path] = to_json(*times);
  for (const auto& [name, member] : kCopies)
    if (const auto& curve = model.*member) out["copies"][name] = to_json(*curve);
  for (const auto& [place, times] : kPacking)
    for (const auto& [direction, member] : kDirections)
      if (const auto& table = model.*times.*member)
        out["packing"][place][direction] = to_json(*table);
  for_block_messages(
      model, [&](auto place, auto order, auto traffic, auto packer, const PackTable& table) {
        out["block_messages"][place][order][traffic][packer] = to_json(table);
      });
  for (const auto& [name, member] : kFlaws)
    if (const auto& flaws = model.*member; !flaws.empty()) out[name] = flaws;
  // Names of processors and hosts need not be UTF-8, but the file must be.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

SystemModel parse_model(std::string_view json, const std::string& source) {
  const auto parsed = parse_json(json, source);
  const Value whole(parsed, source, "");
  Members members(whole);
  const auto schema = members.at("schema");
  if (schema.text() != kSchema) schema.refuse("is not \"" + std::string(kSchema) + "\"");
  SystemModel out;
  out.provenance = provenance_of(members.at("provenance"));
  for (const auto& [name, member] : kScalars)
    if (const auto found = members.find(name)) out.*member = seconds_of(*found);
  if (const auto found = members.find(kInjection)) out.injection_bytes_per_second = rate_of(*found);
  if (const auto found = members.find("messages"))
    read_members(*found, kMessages, message_paths_of, out, "streamed");
  if (const auto found = members.find("copies"))
    read_members(
        *found, kCopies, [](const Value& value) { return curve_of(value); }, out);
  if (const auto found = members.find("packing"))
    read_members(*found, kPacking, pack_times_of, out);
  if (const auto found = members.find("block_messages"))
    read_members(*found, kBlockPlaces, block_times_of, out);
  for (const auto& [name, member] : kFlaws)
    if (const auto found = members.find(name)) out.*member = texts(*found);
  members.check_rest();
  return out;
}

SystemModel read_model(const std::string& path) {
  constexpr FileKind kind{"system model", "measure one with 'halocline calibrate', or name a file",
                          64 << 20};
  return parse_model(read_whole_file(path, kind), path);
}

void write_model(const SystemModel& model, const std::string& path) {
  const auto text = to_json(model);
  parse_model(text, path);  // throws unless the text can be read again
  auto file = begin_to_write(path);
  file.write(text);
  file.commit();
}

void require_writable_model(const std::string& path) {
  begin_to_write(path);
}

std::string require_match(const ModelProvenance& model, const ModelProvenance& machine,
                          bool force) {
  std::string differences;
  for (const auto& [name, member] : kMachine)
    if (model.*member != machine.*member)
      differences.append(differences.empty() ? "" : ", ")
          .append(name)
          .append(" '" + model.*member + "' instead of '" + machine.*member + "'");
  if (!differences.empty() && !force)
    throw ConfigError("system model is of another machine (" + differences +
                      "): measure this one with 'halocline calibrate', or use it all the same "
                      "with --force-model");
  return differences;
}

std::string default_model_path() {
  const std::string inside = "/halocline/model.json";
  if (auto path = variable("HALOCLINE_MODEL"); !path.empty()) return path;
  if (const auto folder = variable("XDG_CONFIG_HOME"); folder.starts_with('/'))
    return folder + inside;
  if (const auto home = variable("HOME"); !home.empty()) return home + "/.config" + inside;
  throw ConfigError(
      "no place for the system model is known (none of HALOCLINE_MODEL, XDG_CONFIG_HOME and HOME "
      "is set): set HALOCLINE_MODEL to a file");
}

}  // namespace halocline::dtype
