#pragma once

#include "command_line.h"

namespace translution::cli {

void add_data_cifar10(Command data);
void add_data_molecules(Command data);
void add_data_text(Command data);

}  // namespace translution::cli
