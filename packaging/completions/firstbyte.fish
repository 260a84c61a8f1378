# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_firstbyte_global_optspecs
    string join \n ? h v V t T q s= p= e= c= g= help version
end

function __fish_firstbyte_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_firstbyte_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_firstbyte_using_subcommand
    set -l cmd (__fish_firstbyte_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c firstbyte -n "__fish_firstbyte_needs_command" -s s -d 'send signal to a master process: stop, quit, reopen, reload' -r -f -a "stop\t''
quit\t''
reopen\t''
reload\t''"
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s p -d 'set prefix path' -r -f -a "(__fish_complete_directories)"
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s e -d 'set error log file' -r -F
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s c -d 'set configuration file' -r -F
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s g -d 'set global directives out of configuration file' -r -f -a "daemon\t''
debug_points\t''
env\t''
error_log\t''
load_module\t''
lock_file\t''
master_process\t''
pcre_jit\t''
pid\t''
reload_connections\t''
ssl_object_cache_inheritable\t''
thread_pool\t''
timer_resolution\t''
user\t''
worker_cpu_affinity\t''
worker_memory_limit\t''
worker_priority\t''
worker_processes\t''
worker_rlimit_core\t''
worker_rlimit_nofile\t''
worker_shutdown_timeout\t''
working_directory\t''"
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s ? -d 'this help'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s h -d 'this help'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s v -d 'show version and exit'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s V -d 'show version and configure options then exit'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s t -d 'test configuration and exit'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s T -d 'test configuration, dump it and exit'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -s q -d 'suppress non-error messages during configuration testing'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -l help -d 'this help, on standard output'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -l version -d 'show version, on standard output'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "bench" -d 'load servers, and report their speed and cost'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "compare" -d 'compare two reports of bench'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "doctor" -d 'find the causes of a late first byte, and how to fix them'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "experiment" -d 'plan an A/B experiment, and report what it found'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "explain" -d 'explain how a request is handled and which configuration lines decide it'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "freeze" -d 'copy a static site, with hashes in names and compressed copies'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "lab" -d 'serve the dashboard of a store of connections'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "lint" -d 'warn of known traps in a configuration, for pipelines'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "map" -d 'draw a world map of round-trip times from access logs or a store'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "via" -d 'run a command behind a link with delay, rate, loss and jitter'
complete -c firstbyte -n "__fish_firstbyte_needs_command" -f -a "waterfall" -d 'draw how a page loads: its requests on a time axis, and their waits'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l connections -d 'Connections at a time' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l streams -d 'Requests at a time on a connection of HTTP/2 or SPDY' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l threads -d 'Threads of the client' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l requests -d 'Requests of a run' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l duration -d 'Time in which a run starts requests (10, without --requests)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l rate -d 'Requests a second, timed from when each should be sent (a closed loop)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l protocol -d 'The protocol; auto lets TLS choose of h2 and h1' -r -f -a "auto\t''
h1\t''
h2\t''
spdy\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l connect -d 'Reuse connections (warm) or open one for each request (cold, or resumed with TLS session resumption)' -r -f -a "warm\t''
cold\t''
resumed\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l method -d 'The method of the requests (GET, with --body POST)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l header -d 'A field, "name: value", of each request; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l body -d 'The body of each POST, PUT and PATCH' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l mix -d 'Requests from a file: on each line a method and a path, or a path' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l access-log -d 'The GET and HEAD requests of an access log' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l timeout -d 'Time limit of a connection or a response' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l warm-up -d 'Load each server for this time first, unmeasured' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l blocks -d 'Runs of each server, in random turns (1, with --against and --table 10)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l against -d 'Another server, loaded in turn and compared' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l seed -d 'The seed of the order of turns (the time)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l pid -d 'Process of a server, to report its CPU time and memory; repeat it for the next server' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l cacert -d 'Trusted CA certificates, PEM (those of browsers)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l spdy-level -d 'zlib\'s level for request heads of SPDY' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l via -d 'Measure through an emulated link, such as 50ms,20mbit; see `firstbyte via -h`' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l fail-if -d 'End with status 2 if this holds: "p95>50", "rate<1000", "errors>0", "status.5xx>0"; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l html -d 'Write the report as a page' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l hdr -d 'Write all times as a log of HdrHistogram' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -s k -l insecure -d 'Accept any certificate'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l table -d 'A row for each of HTTP/2, HTTP/1.1 over TLS and plain, of several servers'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand bench" -l json -d 'Print the report as JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand compare" -l json -d 'Print the comparison as JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l pcap -d 'Analyze a packet capture instead: pcap or pcapng, from any point between client and server' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l keylog -d 'The keys of the capture\'s connections, as browsers and curl write them (SSLKEYLOGFILE)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l har -d 'Analyze a page instead: a HAR file of a browser or of the verb waterfall' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -s c -d 'Analyze a configuration instead, without traffic' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l url -d 'Another URL of the same server, with a response of another size; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l flush -d 'A page of the same server whose application flushes its beginning early; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l docroot -d 'The directory that the URL\'s own is served from: files of many sizes are written there, and removed' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l protocol -d 'The protocol; auto lets TLS choose of h2 and h1' -r -f -a "auto\t''
h1\t''
h2\t''
spdy\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l cacert -d 'Trusted CA certificates, PEM (those of browsers)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l max-requests -d 'Maximum number of requests' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l timeout -d 'Time limit of a connection or a response' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l fail-on -d 'End with status 2 if there is a finding of this level or above' -r -f -a "note\t''
warn\t''
bad\t''
never\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l html -d 'Write the findings as a page' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -s k -l insecure -d 'Accept any certificate'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l try -d 'Change settings of this machine\'s kernel for a while, one after the other, to see what they cost, and restore them; needs root, and a target on this machine'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand doctor" -l json -d 'Print the findings as JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and not __fish_seen_subcommand_from power report" -f -a "power" -d 'number of users and days that an effect needs'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and not __fish_seen_subcommand_from power report" -f -a "report" -d 'verdict and figures of an experiment'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l effect -d 'The difference to be found, such as 0.6%' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l cv -d 'Coefficient of variation of users: standard deviation over mean (1)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l log -d 'Access log with users, plain or compressed; - is standard input; may be repeated' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l format -d 'The format of the logs: its text, its name in the configuration, or json' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -s c -d 'The configuration of the server: the access_log that writes a log names its format' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l unit -d 'The variable that names a user in logs' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l value -d 'The variable with the time in logs' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l store -d 'Store with users of an experiment: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l experiment -d 'This experiment of the store (the only one)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l metric -d 'The metric in the store, such as load (the primary one)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l user -d 'User of ClickHouse' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l password-file -d 'File with the password of this user' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l cacert -d 'Trusted certificates, PEM, instead of those of the system' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l correlation -d 'Correlation of a user\'s value with that before the experiment, for CUPED (that of the store, or 0.5)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l arms -d 'Arms of the experiment, with equal weights' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l intervals -d 'Intervals that share the chance of a false alarm: metrics, statistics and compared arms' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l users-per-day -d 'Users of the experiment per day, for the days to wait (those of the store)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l level -d 'Level of all intervals together' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l power -d 'Chance to find the difference' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from power" -l json -d 'Print JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l store -d 'The store: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l user -d 'User of ClickHouse' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l password-file -d 'File with the password of this user' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l cacert -d 'Trusted certificates, PEM, instead of those of the system' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l at -d 'Visits before this time (UTC, such as 2026-01-31T08:00) instead of now; not later than now' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l effect -d 'Change for which the time to wait is computed' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l json -d 'Write the report as JSON; - is standard output' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l html -d 'Write the report as a page' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand experiment; and __fish_seen_subcommand_from report" -l aa -d 'All arms have the same effect: test the experiment itself (A/A)'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -s c -d 'Configuration file, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -s p -d 'Prefix path, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -s g -d 'Global directives, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -s e -d 'Error log file, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -s H -d 'A field of the request, "Name: value"; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -l method -d 'The method of the request' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -l from -d 'The client, with or without a port, or unix: (127.0.0.1)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -l to -d 'The address of the server, with or without a port (from the URL)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -l all -d 'Print settings at their default, too'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand explain" -l json -d 'Print JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l out -d 'Directory of the frozen tree' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l manifest -d 'File of the manifest (beside the frozen tree, with .manifest.json after its name)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l keep -d 'Files that keep their names; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l exclude -d 'Files to leave out; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l site -d 'URL of the tree: https://host/path/ or /path/' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l encodings -d 'Compressed copies to write, separated by commas, or none' -r -f -a "br\t''
zst\t''
gz\t''
none\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l effort -d 'Time for compressing' -r -f -a "fast\t''
good\t''
best\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l threads -d 'Threads (one for each processor)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l all -d 'Also rename files without references'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l follow -d 'Follow symbolic links that lead out of the tree'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l strict -d 'End with status 2 if a reference is broken, or blocked by a wrong digest'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand freeze" -l verbose -d 'Report files that keep their names because a script names them'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l store -d 'The store: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l listen -d 'Address and port of the pages' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l user -d 'User of ClickHouse' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l password-file -d 'File with the password of this user' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l cacert -d 'Trusted certificates, PEM, instead of those of the system' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lab" -l public -d 'Serve every client, on an address that other machines can reach'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -s c -d 'Configuration file; relative to the prefix, or without -p to the current directory' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -s p -d 'Prefix path, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -s g -d 'Global directives, as for serving' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -l fail-on -d 'End with status 2 if there is a warning of this level or above' -r -f -a "notice\t''
warn\t''
error\t''
never\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -l only -d 'Codes to report, separated by commas; may be repeated' -r -f -a "FB001\t''
FB002\t''
FB101\t''
FB102\t''
FB103\t''
FB104\t''
FB105\t''
FB106\t''
FB107\t''
FB108\t''
FB109\t''
FB110\t''
FB111\t''
FB201\t''
FB202\t''
FB203\t''
FB204\t''
FB205\t''
FB206\t''
FB301\t''
FB302\t''
FB303\t''
FB304\t''
FB305\t''
FB306\t''
FB401\t''
FB402\t''
FB403\t''
FB404\t''
FB405\t''
FB501\t''
FB502\t''
FB601\t''
FB602\t''
FB603\t''
FB604\t''
FB605\t''
FB606\t''
FB607\t''
FB701\t''
FB702\t''
FB703\t''
FB801\t''
FB802\t''
FB803\t''
FB804\t''
FB901\t''
FB902\t''
FB903\t''
FB904\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -l ignore -d 'Codes to leave out, separated by commas; may be repeated' -r -f -a "FB001\t''
FB002\t''
FB101\t''
FB102\t''
FB103\t''
FB104\t''
FB105\t''
FB106\t''
FB107\t''
FB108\t''
FB109\t''
FB110\t''
FB111\t''
FB201\t''
FB202\t''
FB203\t''
FB204\t''
FB205\t''
FB206\t''
FB301\t''
FB302\t''
FB303\t''
FB304\t''
FB305\t''
FB306\t''
FB401\t''
FB402\t''
FB403\t''
FB404\t''
FB405\t''
FB501\t''
FB502\t''
FB601\t''
FB602\t''
FB603\t''
FB604\t''
FB605\t''
FB606\t''
FB607\t''
FB701\t''
FB702\t''
FB703\t''
FB801\t''
FB802\t''
FB803\t''
FB804\t''
FB901\t''
FB902\t''
FB903\t''
FB904\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -l json -d 'Print JSON'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand lint" -l sarif -d 'Print SARIF 2.1.0, which code hosts read; paths are relative to the current directory'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l store -d 'Read a store, sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE, instead of logs' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l user -d 'User of ClickHouse' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l password-file -d 'File with the password of this user' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l cacert -d 'Trusted certificates, PEM, instead of those of the system' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l days -d 'Connections of this many days until now' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l protocol -d 'Only connections of this protocol, such as HTTP/2.0' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l server -d 'Only connections of this server' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l format -d 'The format of the logs: its text, its name in the configuration, or one of the names below (detected)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -s c -d 'The configuration of the server: the access_log that writes a log names its format' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l client -d 'The variable with the client\'s address; of a list, the last public address counts' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l threads -d 'Threads that parse (one for each processor)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l geoip -d 'A database of countries: MMDB, or a list of Tor (those of Debian\'s tor-geoipdb); may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l min-samples -d 'Least number of samples to color a country' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l json -d 'Print JSON, or write it to a file' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l html -d 'Write the map and its table as a page' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l svg -d 'Write the map as a picture' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l csv -d 'Write the figures as a table' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand map" -l follow -d 'Wait for more lines, also of rotated logs, and report every 5 seconds, until a signal'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand via" -l server -d 'A shell command that serves at the other end; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand via" -l port -d 'A port of localhost, from 32768 on, that is also reached over the link; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand via" -l pcap -d 'Write packets to FILE as they leave the link' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand via" -l json -d 'Write the report to FILE as JSON' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand via" -l quiet -d 'Print no report at the end'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l protocol -d 'The protocol; auto lets TLS choose of h2 and h1. Browsers use h2 over TLS only' -r -f -a "auto\t''
h1\t''
h2\t''
spdy\t''"
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l runs -d 'Visits of the page; the median visit is drawn (1)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l timeout -d 'Time limit of a view (60)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l cacert -d 'Trusted CA certificates of the built-in clients, PEM (those of browsers)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l browser -d 'The browser (Chromium or Chrome, found automatically)' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l via -d 'Visit through an emulated link, such as 50ms,20mbit; see `firstbyte via -h`' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l pcap -d 'Write packets to FILE as they leave the link (0ms, without --via), and TLS secrets to FILE.keys' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l page -d 'The page of a HAR file, by its name or its number (the first one, with others of its URL as further runs)' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l fail-if -d 'End with status 2 if this holds: "load>2000", "requests>50", "bytes>1e6", "status.404>0"; may be repeated' -r
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l har -d 'Write the visits as a HAR file' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l html -d 'Write the waterfall as a self-contained page' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l svg -d 'Write the waterfall as a picture' -r -F
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l wire -d 'Visit with the built-in clients, which run no scripts and paint nothing'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l warm -d 'Visit the page again with warm caches'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -s k -l insecure -d 'Accept any certificate'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l any-host -d 'Compare resources by path, ignoring their hosts'
complete -c firstbyte -n "__fish_firstbyte_using_subcommand waterfall" -l json -d 'Print the figures as JSON'
