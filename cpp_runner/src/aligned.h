// Arrays that begin where a cache line does. A register's worth of numbers that spans two lines takes two reads, which
// made products with 64-byte registers a fifth slower.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace compgen {

template <class T>
struct OnLines {
  using value_type = T;
  static constexpr std::align_val_t LINE{64};

  OnLines() = default;
  template <class Other>
  OnLines(const OnLines<Other>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), LINE)); }
  void deallocate(T* array, std::size_t) { ::operator delete(array, LINE); }
  friend bool operator==(const OnLines&, const OnLines&) { return true; }
  friend bool operator!=(const OnLines&, const OnLines&) { return false; }
};

template <class T>
using Aligned = std::vector<T, OnLines<T>>;

}  // namespace compgen
