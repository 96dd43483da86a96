#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

/// The system calls that change the disk. Each throws one line with the path, the reason and what
/// to do, unless it succeeds; an interrupted or partial call goes on. `shown` is the path of the
/// message, where the file has another for now.
namespace translution::disk {

/// Opens a new file for writing; -1 if there is one of that name.
int create(const std::string& path, const std::string& shown);
/// Opens a device or pipe for writing; waits for the reader of a pipe.
int open_existing(const std::string& path);
/// Permissions of a new file, where the file system has them: a failure is ignored.
void set_mode(int fd, mode_t mode);
void write(int fd, std::string_view bytes, const std::string& shown);
/// Returns when the content is on the disk.
void sync(int fd, const std::string& shown);
/// The same for the names in a directory.
void sync_directory(const std::string& path);

void make_directory(const std::string& path);
/// With those above it, and only where they are missing; they survive a loss of power. Refuses an
/// empty path.
void make_directories(const std::string& path);
void make_link(const std::string& target, const std::string& path);
/// Replaces a file or link `to`; both in one file system.
void rename(const std::string& from, const std::string& to);
/// Each gets the other's name, in one step.
void exchange(const std::string& a, const std::string& b);
/// A file, a link, or a directory with all in it.
void remove(const std::string& path);

/// A name that no other file of a running process has: ".tmp-" and numbers.
std::string temporary_name();
inline constexpr std::string_view kTemporary = ".tmp-";

}  // namespace translution::disk
