# Completion of firstbyte for fish. Generated from the tables of options; see app/src/manual_tests.
complete -c firstbyte -f
complete -c firstbyte -s '?' -d 'print this text'
complete -c firstbyte -s 'h' -d 'print this text'
complete -c firstbyte -s 'v' -d 'print the version and exit'
complete -c firstbyte -s 'V' -d 'print the version and how it was built, then exit'
complete -c firstbyte -s 't' -d 'check the configuration and exit'
complete -c firstbyte -s 'T' -d 'check the configuration, print it and exit'
complete -c firstbyte -s 'q' -d 'print nothing but errors while checking'
complete -c firstbyte -s 's' -x -a 'stop quit reopen reload' -d 'tell the running server to: stop, quit, reopen, reload'
complete -c firstbyte -s 'p' -x -a '(__fish_complete_directories)' -d 'directory of relative paths'
complete -c firstbyte -s 'e' -r -F -d 'error log before the configuration is read'
complete -c firstbyte -s 'c' -r -F -d 'configuration file'
complete -c firstbyte -s 'g' -x -a 'daemon debug_points env error_log load_module lock_file master_process pcre_jit pid reload_connections ssl_object_cache_inheritable thread_pool timer_resolution user worker_cpu_affinity worker_priority worker_processes worker_rlimit_core worker_rlimit_nofile worker_shutdown_timeout working_directory' -d 'directives to put before the configuration file\'s'
