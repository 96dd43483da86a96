#pragma once

namespace translution {

/// Memory of this process that is in the machine, in MiB; 0 where the system does not tell.
double resident_mib();

}  // namespace translution
