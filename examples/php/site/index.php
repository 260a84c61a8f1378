<?php
// A page in two parts: the browser has the first while PHP still waits with the second.
header('Content-Type: text/html; charset=utf-8');
$path = htmlspecialchars($_SERVER['PATH_INFO'] ?? '');
?>
<!DOCTYPE html>
<title>PHP behind firstbyte</title>
<h1>PHP <?= PHP_VERSION ?></h1>
<p>The path is <code>“<?= $path ?>”</code>, by <?= $_SERVER['REQUEST_METHOD'] ?> over <?= $_SERVER['SERVER_PROTOCOL'] ?>.</p>
<p>You see this at once,
<?php
flush();
usleep(500_000);
?>
and this half a second later.</p>
