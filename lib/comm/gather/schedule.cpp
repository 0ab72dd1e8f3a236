// SPDX-License-Identifier: BSD-3-Clause
#include "comm/gather/schedule.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "dtype/datatype.hpp"
#include "dtype/pack/host/host_packer.hpp"
#include "dtype/type_tree.hpp"
#include "support/error.hpp"

namespace halocline::comm {

namespace {

/// Finds the receives, by number, that write a part of one buffer.
class Writers {
 public:
  // Adds a writer. Blocks of one type are disjoint.
  void add(const ElementBlock& block, std::size_t writer) {
    if (block.elements() == 0) return;
    one_type_ = one_type_ && (entries_.empty() || block.type == type_);
    type_ = block.type;
    entries_.push_back({block.range, writer});
  }
  void sort() {
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.range.first < b.range.first; });
  }
  // Appends the writers that `block` has to wait for.
  void find(const ElementBlock& block, std::vector<std::size_t>& out) const {
    const bool comparable = one_type_ && block.type == type_;
    auto at = entries_.begin();
    if (comparable)
      at = std::lower_bound(
          at, entries_.end(), block.range.first,
          [](const Entry& entry, std::int64_t first) { return entry.range.last <= first; });
    for (; at != entries_.end() && (!comparable || at->range.first < block.range.last); ++at)
      out.push_back(at->writer);
  }

 private:
  struct Entry {
    dtype::ElementRange range;
    std::size_t writer;
  };
  std::vector<Entry> entries_;
  dtype::TypeExprPtr type_;
  bool one_type_ = true;
};

}  // namespace

void Schedule::send(const Link& to, const ElementBlocks& blocks) {
  add(sends_, to, blocks, true);
}

void Schedule::receive(const Link& from, const ElementBlocks& blocks) {
  add(receives_, from, blocks, false);
}

// Each message of a run from one rank to another one has its own tag, since sends start in any
// order. Sends of the next run start later, so tags are reused.
void Schedule::add(std::vector<Piece>& pieces, const Link& link, const ElementBlocks& blocks,
                   bool sends) {
  auto& tag = tags_[{link.comm, link.rank, sends}];
  for (auto& piece : divide(blocks, most_elements_)) {
    if (tag == kTags)
      throw ConfigError("too many messages between two ranks (more than " + std::to_string(kTags) +
                        " of " + std::to_string(most_elements_) +
                        " elements): allow more elements in a message");
    pieces.push_back({std::move(piece), link, tag++});
  }
}

void Schedule::copy(const ElementBlocks& from, const ElementBlocks& to) {
  const auto sources = divide(from, most_elements_), destinations = divide(to, most_elements_);
  for (Index i = 0; i < sources.size(); ++i) {
    const auto& to_piece = destinations[i];
    copied_to_.insert(copied_to_.end(), to_piece.begin(), to_piece.end());
    const auto source = join(sources[i]), destination = join(to_piece);
    copies_.emplace_back(
        std::vector{dtype::CopyJob{dtype::make_plan(*source.type), source.buffer, 1,
                                   dtype::make_plan(*destination.type), destination.buffer, 1}});
  }
}

void Schedule::finish() {
  const auto request = [&](Role role, const Piece& piece) {
    const auto message = join(piece.blocks);
    const auto type = dtype::make_datatype(*message.type);
    requests_.add(role, message.buffer, 1, type.get(), piece.link.rank, piece.tag, piece.link.comm);
    return dtype::type_bounds(*message.type).size;
  };
  std::map<void*, Writers> writers;
  for (Index i = 0; i < receives_.size(); ++i) {
    request(Role::receiver, receives_[i]);
    for (const auto& block : receives_[i].blocks) writers[block.buffer].add(block, i);
  }
  receive_count_ = receives_.size();
  for (const auto& block : copied_to_) writers[block.buffer].add(block, receive_count_);
  for (auto& [buffer, of_buffer] : writers) of_buffer.sort();

  dependents_.resize(receive_count_ + 1);
  for (Index i = 0; i < sends_.size(); ++i) {
    std::vector<Index> waits_for;
    for (const auto& block : sends_[i].blocks) {
      if (block.only_sent) continue;
      if (const auto found = writers.find(block.buffer); found != writers.end())
        found->second.find(block, waits_for);
    }
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
    for (const auto writer : waits_for) dependents_[writer].push_back(i);
    const auto bytes = request(Role::sender, sends_[i]);
    send_list_.push_back({bytes, sends_[i].link.off_node, static_cast<int>(waits_for.size())});
  }
  receives_.clear();
  sends_.clear();
  copied_to_.clear();
}

void Schedule::start_if_ready(Index send, ScheduleTraffic& traffic) {
  if (waiting_[send] > 0) return;
  const auto& started = send_list_[send];
  requests_.start(receive_count_ + send);
  auto& counted = started.off_node ? traffic.off_node : traffic.on_node;
  ++counted.messages;
  counted.bytes += started.bytes;
}

void Schedule::run(ScheduleTraffic& traffic) {
  waiting_.resize(send_list_.size());
  for (Index i = 0; i < receive_count_; ++i) requests_.start(i);
  for (Index i = 0; i < send_list_.size(); ++i) {
    waiting_[i] = send_list_[i].waits_for;
    start_if_ready(i, traffic);
  }
  const auto arrived = [&](Index writer) {
    for (const auto send : dependents_[writer]) {
      --waiting_[send];
      start_if_ready(send, traffic);
    }
  };
  const auto handle = [&](std::span<const int> done) {
    for (const int request : done)
      if (static_cast<Index>(request) < receive_count_) arrived(static_cast<Index>(request));
    return !done.empty();
  };
  const dtype::HostPacker packer;
  for (const auto& copy : copies_) {
    packer.copy(copy);
    traffic.copied_bytes += copy.bytes();
    if (copies_.size() > 1) handle(requests_.test_some());
  }
  arrived(receive_count_);
  const bool nothing_waits =
      std::all_of(waiting_.begin(), waiting_.end(), [](int count) { return count == 0; });
  if (nothing_waits) return requests_.wait_all();
  while (handle(requests_.wait_some())) continue;
}

}  // namespace halocline::comm
