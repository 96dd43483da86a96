# The library inside the Python package: `pip install .` installs this, and the files of python/translution.
# Beside PyTorch in site-packages; one file, because wheels have no links.
set_property(TARGET translution PROPERTY VERSION)
set_property(TARGET translution PROPERTY SOVERSION)
set_target_properties(translution PROPERTIES INSTALL_RPATH "$ORIGIN/../torch/lib")
install(TARGETS translution LIBRARY DESTINATION translution)
