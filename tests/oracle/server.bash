# Ports and servers, for the scripts beside it that include this. They set `binary`, the program, and `scratch`, a folder
# with its nginx.conf.

# A port that nobody listens on.
free_port() {
    local port
    for port in $(shuf -i 20000-29999 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    return 1
}

# Writes the configuration, with what is inside the block `http` besides the paths, and a page.
write_conf() {
    local user=''
    [ "$(id -u)" -ne 0 ] || user='user root;'
    mkdir -p "$scratch/html"
    echo '<h1>welcome</h1>' >"$scratch/html/index.html"
    cat >"$scratch/nginx.conf" <<CONF
$user
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log info;
events { }
http {
    access_log off;
    client_body_temp_path body;
    $1
}
CONF
}

# Starts the server, whose number is then in `pid`, and waits until it accepts on a port.
serve() {
    local port=$1
    "$binary" -p "$scratch/" -c nginx.conf -e error.log >"$scratch/output" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    cat "$scratch/output" "$scratch/error.log" >&2
    return 1
}
