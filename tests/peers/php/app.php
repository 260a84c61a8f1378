<?php
// An application behind php-fpm: logging in with a session, uploads, a download, pages that are flushed in parts.
// The path after its name says what is asked; index.php beside it is for paths that are no files.

const SIZE = 20 << 20;

// 20 MB whose bytes tell where they belong.
function pieces(): iterable
{
    $block = str_repeat(implode('', array_map('chr', range(0, 250))), 261);
    for ($left = SIZE; $left > 0; $left -= strlen($piece)) {
        $piece = substr($block, 0, $left);
        yield $piece;
    }
}

// Lets what has been printed go, whatever php.ini says of buffers.
function let_go(): void
{
    while (ob_get_level() > 0) {
        ob_end_flush();
    }
    flush();
}

// A file in the folder of gates that the request names.
function gate(string $name): string
{
    return dirname($_SERVER['DOCUMENT_ROOT']) . '/gates/' . basename($_GET['gates']) . '/' . $name;
}

// Waits until the test has made the file of this number.
function wait_for_gate(int $number): void
{
    $file = gate((string) $number);
    for ($tries = 0; !file_exists($file) && $tries < 16000; $tries++) {
        usleep(500);
        clearstatcache();
    }
}

function answer(int $status, string $text): void
{
    http_response_code($status);
    header('Content-Type: text/plain');
    echo $text;
}

switch ($_SERVER['PATH_INFO'] ?? '') {
    case '/login':
        session_start();
        $_SESSION['name'] = $_POST['name'];
        setcookie('theme', 'dark');
        header("Location: http://{$_SERVER['HTTP_HOST']}/app.php/me");
        break;
    case '/me':
        session_start();
        isset($_SESSION['name']) ? answer(200, "hello {$_SESSION['name']}") : answer(403, 'who are you?');
        break;
    case '/upload':
        // As the body of the request, whatever its type.
        $hash = hash_init('sha256');
        $size = hash_update_stream($hash, fopen('php://input', 'rb'));
        answer(200, $size . ' ' . hash_final($hash));
        break;
    case '/form':
        // As a form with a file.
        $file = $_FILES['file'];
        answer(200, "{$_POST['text']} {$file['name']} {$file['size']} " . hash_file('sha256', $file['tmp_name']));
        break;
    case '/digest':
        $hash = hash_init('sha256');
        foreach (pieces() as $piece) {
            hash_update($hash, $piece);
        }
        answer(200, SIZE . ' ' . hash_final($hash));
        break;
    case '/download':
        header('Content-Type: application/octet-stream');
        if (isset($_GET['length'])) {
            header('Content-Length: ' . SIZE);
        }
        foreach (pieces() as $piece) {
            echo $piece;
        }
        break;
    case '/parts':
        // Each part leaves when its gate is open. The head leaves at once, with a line: PHP sends no head alone.
        header('Content-Type: text/plain');
        if (isset($_GET['unbuffered'])) {
            header('X-Accel-Buffering: no');
        }
        if (isset($_GET['length'])) {
            header('Content-Length: ' . (strlen("parts\n") + 10 * strlen("part 0\n")));
        }
        echo "parts\n";
        let_go();
        for ($number = 0; $number < 10; $number++) {
            wait_for_gate($number);
            echo "part $number\n";
            let_go();
        }
        break;
    case '/slow':
        touch(gate('begun'));
        wait_for_gate(0);
        answer(200, 'slow');
        break;
    case '/page':
        // In two halves, 2000 numbered lines in all.
        header('Content-Type: text/plain');
        for ($number = 0; $number < 2000; $number++) {
            echo "line $number\n";
            if ($number === 1000) {
                let_go();
            }
        }
        break;
    case '/log':
        error_log('a line of the application');
        answer(200, 'logged');
        break;
    case '/broken':
        throw new RuntimeException('broken on purpose');
    case '/tag':
        header('ETag: "php"');
        $known = ($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === '"php"';
        $known ? http_response_code(304) : answer(200, 'tagged');
        break;
    case '/file':
        header('X-Accel-Redirect: /files/given.txt');
        break;
    case '/ask':
        // What the server has said of the request: a line for each name in the query.
        foreach (explode(',', $_GET['names']) as $name) {
            echo $name, '=', $_SERVER[$name] ?? '-', "\n";
        }
        break;
    default:
        answer(404, "nothing at '" . ($_SERVER['PATH_INFO'] ?? '') . "'");
}
