// Encoded prototypes: each is encoded when first asked for, and then kept. Threads share them: what one encodes, others
// wait for, and meanwhile encode what else they need.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <vector>

#include "backend.h"

namespace compgen {

template <class Real>
class Memories {
 public:
  // Room for the sequences of up to `width` tokens; those that are longer must not be asked for.
  Memories(const Bundle& bundle, Backend<Real>& backend, std::int64_t width)
      : bundle_(bundle),
        backend_(backend),
        width_(width),
        block_of_keys_(bundle.prototypes * width * bundle.attention),
        block_of_final_(bundle.prototypes * bundle.final_size),
        status_(bundle.pool.sequences().size(), Status::fresh) {
    if (bundle.prototypes == 0) return;
    keys_ = Array(status_.size() * static_cast<std::size_t>(block_of_keys_));
    values_ = Array(status_.size() * static_cast<std::size_t>(block_of_keys_));
    final_ = Array(status_.size() * static_cast<std::size_t>(block_of_final_));
  }

  // Encodes those of some prototypes that are not encoded yet; many at once are cheaper than few.
  void prepare(std::vector<std::int64_t> wanted) {
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (;;) {
      std::vector<std::int64_t> mine;
      {
        std::unique_lock lock(mutex_);
        for (const auto row : wanted) {
          if (status(row) == Status::fresh) mine.push_back(row);
        }
        if (mine.empty()) {
          const auto encoded = [this](std::int64_t row) { return status(row) == Status::encoded; };
          if (std::all_of(wanted.begin(), wanted.end(), encoded)) return;
          changed_.wait(lock);
          continue;
        }
        for (const auto row : mine) status(row) = Status::claimed;
      }
      try {
        encode(mine);
      } catch (...) {
        settle(mine, Status::fresh);  // others may try, and fail for themselves
        throw;
      }
      settle(mine, Status::encoded);
    }
  }

  // Gives n prepared prototypes, each in its role (n), and copies their last states (n, D).
  void fetch(const std::int64_t* chosen, Memory<Real>* memories, Real* final) const {
    const std::int64_t final_of_slot = bundle_.final_size;
    for (std::int64_t slot = 0; slot < bundle_.prototypes; ++slot) {
      const std::int64_t from = chosen[slot] * block_of_keys_ + slot * width_ * bundle_.attention;
      const auto& sequence = sequence_of(chosen[slot]);
      memories[slot] = {keys_.get() + from, values_.get() + from, sequence.data(),
                        static_cast<std::int64_t>(sequence.size())};
      std::copy_n(final_.get() + chosen[slot] * block_of_final_ + slot * final_of_slot, final_of_slot,
                  final + slot * final_of_slot);
    }
  }

 private:
  enum class Status : std::uint8_t { fresh, claimed, encoded };
  static constexpr std::size_t BLOCK = 128;  // sequences encoded at a time

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  // Zeros that begin where a cache line does, as in aligned.h. Pages of them take memory only once they are written to.
  class Array {
   public:
    Array() = default;
    explicit Array(std::size_t count) : memory_(std::calloc(count + LINE / sizeof(Real), sizeof(Real))) {
      if (!memory_) throw std::bad_alloc();
      const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
      numbers_ = reinterpret_cast<Real*>((address + LINE - 1) / LINE * LINE);
    }
    Real* get() const { return numbers_; }

   private:
    static constexpr auto LINE = static_cast<std::size_t>(OnLines<Real>::LINE);
    std::unique_ptr<void, Free> memory_;
    Real* numbers_ = nullptr;
  };

  Status& status(std::int64_t row) { return status_[static_cast<std::size_t>(row)]; }
  const Tokens& sequence_of(std::int64_t row) const {
    return bundle_.pool.sequences()[static_cast<std::size_t>(row)];
  }

  void settle(const std::vector<std::int64_t>& rows, Status as) {
    const std::lock_guard lock(mutex_);
    for (const auto row : rows) status(row) = as;
    changed_.notify_all();
  }

  void encode(std::vector<std::int64_t> rows) {
    const auto shorter = [this](auto a, auto b) { return sequence_of(a).size() < sequence_of(b).size(); };
    std::stable_sort(rows.begin(), rows.end(), shorter);
    const std::int64_t n = bundle_.prototypes, a = bundle_.attention;
    for (std::size_t first = 0; first < rows.size(); first += BLOCK) {
      const std::size_t last = std::min(first + BLOCK, rows.size());
      const auto width = static_cast<std::int64_t>(sequence_of(rows[last - 1]).size());
      const auto count = static_cast<std::int64_t>(last - first);
      std::vector<std::int64_t> tokens(static_cast<std::size_t>(count * width), PAD);
      for (std::int64_t k = 0; k < count; ++k) {
        const auto& sequence = sequence_of(rows[first + static_cast<std::size_t>(k)]);
        std::copy(sequence.begin(), sequence.end(), tokens.begin() + k * width);
      }
      const auto encoded = backend_.encode(tokens, count, width);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t row = rows[first + static_cast<std::size_t>(k)];
        for (std::int64_t slot = 0; slot < n; ++slot) {
          const std::int64_t to = row * block_of_keys_ + slot * width_ * a, from = (k * n + slot) * width * a;
          std::copy_n(encoded.keys.data() + from, width * a, keys_.get() + to);
          std::copy_n(encoded.values.data() + from, width * a, values_.get() + to);
        }
        std::copy_n(encoded.final.data() + k * block_of_final_, block_of_final_, final_.get() + row * block_of_final_);
      }
    }
  }

  const Bundle& bundle_;
  Backend<Real>& backend_;
  std::int64_t width_, block_of_keys_, block_of_final_;  // blocks: numbers of one sequence in all roles
  std::vector<Status> status_;
  Array keys_, values_, final_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace compgen
