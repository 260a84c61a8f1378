# Completion of firstbyte for bash. Generated from the tables of options; see app/src/manual_tests.
_firstbyte() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if [[ ${COMP_WORDS[1]} == bench && $COMP_CWORD -gt 1 ]]; then
        case $prev in
            --connections)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --streams)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --threads)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --requests)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --duration)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --rate)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --protocol)
                mapfile -t COMPREPLY < <(compgen -W 'auto h1 h2 spdy' -- "$cur")
                return ;;
            --connect)
                mapfile -t COMPREPLY < <(compgen -W 'warm cold resumed' -- "$cur")
                return ;;
            --method)
                mapfile -t COMPREPLY < <(compgen -W 'GET HEAD POST PUT DELETE' -- "$cur")
                return ;;
            --header)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --body)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --mix)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --access-log)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --timeout)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --warm-up)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --blocks)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --against)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --seed)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --pid)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --cacert)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --spdy-level)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --via)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --fail-if)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --html)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --hdr)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W '--connections --streams --threads --requests --duration --rate --protocol --connect --method --header --body --mix --access-log --timeout --warm-up --blocks --against --seed --pid --cacert --insecure --spdy-level --via --fail-if --table --json --html --hdr' -- "$cur")
        return
    fi
    if [[ ${COMP_WORDS[1]} == compare && $COMP_CWORD -gt 1 ]]; then
        case $prev in
        esac
        mapfile -t COMPREPLY < <(compgen -f -W '--json' -- "$cur")
        return
    fi
    if [[ ${COMP_WORDS[1]} == freeze && $COMP_CWORD -gt 1 ]]; then
        case $prev in
            --out)
                mapfile -t COMPREPLY < <(compgen -d -- "$cur")
                return ;;
            --manifest)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --keep)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --exclude)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --site)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --encodings)
                mapfile -t COMPREPLY < <(compgen -W 'br zst gz br,zst,gz none' -- "$cur")
                return ;;
            --effort)
                mapfile -t COMPREPLY < <(compgen -W 'fast good best' -- "$cur")
                return ;;
            --threads)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
        esac
        mapfile -t COMPREPLY < <(compgen -d -W '--out --manifest --keep --exclude --site --encodings --effort --threads --all --follow --strict --verbose' -- "$cur")
        return
    fi
    if [[ ${COMP_WORDS[1]} == via && $COMP_CWORD -gt 1 ]]; then
        case $prev in
            --server)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --port)
                mapfile -t COMPREPLY < <(compgen -W '' -- "$cur")
                return ;;
            --pcap)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
            --json)
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                return ;;
        esac
        mapfile -t COMPREPLY < <(compgen -c -W '--server --port --pcap --json --quiet' -- "$cur")
        return
    fi
    case $prev in
        -*s)
            mapfile -t COMPREPLY < <(compgen -W 'stop quit reopen reload' -- "$cur")
            return ;;
        -*p)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            return ;;
        -*e)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return ;;
        -*c)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return ;;
        -*g)
            mapfile -t COMPREPLY < <(compgen -W 'daemon debug_points env error_log load_module lock_file master_process pcre_jit pid reload_connections ssl_object_cache_inheritable thread_pool timer_resolution user worker_cpu_affinity worker_memory_limit worker_priority worker_processes worker_rlimit_core worker_rlimit_nofile worker_shutdown_timeout working_directory' -- "$cur")
            return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W '-? -h -v -V -t -T -q -s -p -e -c -g --help --version' -- "$cur")
    [[ $COMP_CWORD -eq 1 ]] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W 'bench compare explain freeze via help' -- "$cur")
}
complete -F _firstbyte firstbyte
