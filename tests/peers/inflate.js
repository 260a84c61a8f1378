// Prints what can be decoded of the beginning of a Brotli stream on standard input.
'use strict';
const zlib = require('zlib');
const input = require('fs').readFileSync(0);
const options = { finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH };
process.stdout.write(zlib.brotliDecompressSync(input, options));
