// How many processors this process may use; see compgen/processors.py.
#pragma once

#include <filesystem>

namespace compgen {

// Its share of the machine, in a container or a batch system's job, too.
int processors();

// How many processors' time the control group of this process has at most, more than 0; or infinity. `root` holds proc, sys.
double limit_of_time(const std::filesystem::path& root);

}  // namespace compgen
