// How many processors this process may use; see compgen/processors.py.
#pragma once

namespace compgen {

// Its share of the machine, in a container or a batch system's job, too.
int processors();

}  // namespace compgen
