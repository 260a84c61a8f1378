# Completion of firstbyte for bash. Generated from the tables of options; see app/src/manual_tests.
_firstbyte() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
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
            mapfile -t COMPREPLY < <(compgen -W 'daemon debug_points env error_log load_module lock_file master_process pcre_jit pid reload_connections ssl_object_cache_inheritable thread_pool timer_resolution user worker_cpu_affinity worker_priority worker_processes worker_rlimit_core worker_rlimit_nofile worker_shutdown_timeout working_directory' -- "$cur")
            return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W '-? -h -v -V -t -T -q -s -p -e -c -g' -- "$cur")
    [[ $COMP_CWORD -eq 1 ]] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W 'explain freeze via' -- "$cur")
}
complete -F _firstbyte firstbyte
