# GATEMARK_VERSION: that of the wheel that is built, or of the checkout by its latest tag.
get_filename_component(gatemark_root "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
if(SKBUILD_PROJECT_VERSION_FULL)
  set(GATEMARK_VERSION "${SKBUILD_PROJECT_VERSION_FULL}")
else()
  execute_process(COMMAND "${gatemark_root}/scripts/version_of_tag.py" OUTPUT_VARIABLE GATEMARK_VERSION
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS "${gatemark_root}/.venv/installed" AND NOT CMAKE_SCRIPT_MODE_FILE)  # written again when the version changes
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${gatemark_root}/.venv/installed")
  endif()
endif()
message(STATUS "gatemark ${GATEMARK_VERSION}")
