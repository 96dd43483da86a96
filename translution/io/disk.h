#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

/// System calls that change the disk. On failure each throws std::runtime_error with the path, the
/// reason and what to do. Interrupted and partial calls are continued. `shown` is the path for the
/// message if the file currently has a temporary name.
namespace translution::disk {

/// Creates a file and opens it for writing; -1 if it exists.
int create(const std::string& path, const std::string& shown);
/// Opens a device or pipe for writing; waits until a pipe has a reader.
int open_existing(const std::string& path);
/// Sets the permissions. Ignores failures: some file systems have none.
void set_mode(int fd, mode_t mode);
void write(int fd, std::string_view bytes, const std::string& shown);
/// Sets where the next write begins.
void seek(int fd, int64_t byte, const std::string& shown);
/// Returns when the contents are on disk.
void sync(int fd, const std::string& shown);
/// Returns when the entries of the directory are on disk.
void sync_directory(const std::string& path);

void make_directory(const std::string& path);
/// Creates the directory and its missing parents, synced to disk. Throws std::invalid_argument for
/// an empty path.
void make_directories(const std::string& path);
void make_link(const std::string& target, const std::string& path);
/// Replaces a file or link `to`; both must be in one file system.
void rename(const std::string& from, const std::string& to);
/// Swaps two names atomically.
void exchange(const std::string& a, const std::string& b);
/// Removes a file, a link, or a directory with its contents.
void remove(const std::string& path);

/// A file name that is unique among running processes: ".tmp-", process id, counter.
std::string temporary_name();
inline constexpr std::string_view kTemporary = ".tmp-";

}  // namespace translution::disk
