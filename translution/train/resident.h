#pragma once

namespace translution {

/// Resident memory of this process in MiB; 0 if the system does not report it.
double resident_mib();
/// Its peak since the process started.
double peak_resident_mib();

}  // namespace translution
