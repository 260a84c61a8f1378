<?php
// What paths without a file of their own come to.
header('Content-Type: text/plain');
echo "index {$_SERVER['REQUEST_URI']} {$_SERVER['SCRIPT_NAME']} {$_SERVER['QUERY_STRING']}";
