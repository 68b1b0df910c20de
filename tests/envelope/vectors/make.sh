#!/bin/sh
# Makes the vectors with nothing of ours: GNU tar, bzip2, age, age-keygen, openssl.
# The keys are for tests only. Usage: sh make.sh, in this folder; the keys are new each time.
set -eu
id=20261120-lighthouse
rm -rf plain age openssl
mkdir -p "plain/$id" age openssl
printf '101\tD7\t1\n101\tD2\t2\n007\tD7\t1\n' | bzip2 >"plain/$id/dev.txt.bz2"
printf '301\tD1\t1\n302\tD9\t1\n' | bzip2 >"plain/$id/eval.txt.bz2"
dev=$(sha256sum <"plain/$id/dev.txt.bz2" | cut -c1-64)
eval=$(sha256sum <"plain/$id/eval.txt.bz2" | cut -c1-64)
cat >plain/metadata.json <<EOF
{"team": "Lighthouse", "type": "full ranking", "id": "$id", "revision": 1,
 "digests": {"dev": "$dev", "eval": "$eval"}}
EOF
# -b 1: no filling to 10 kB, so that flipping every byte stays quick.
tar -b 1 -cf run.tar -C plain "$id"

age-keygen 2>/dev/null >age/identity.txt
recipient=$(age-keygen -y age/identity.txt)
age-keygen 2>/dev/null | grep '^AGE-SECRET-KEY-1' >key
sender=$(age-keygen -y key)
age -r "$sender" <run.tar >"age/$id.tar.age"
age -r "$sender" <plain/metadata.json >"age/$id-metadata.json.age"
age -r "$recipient" <key >"age/$id.key.age"

openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out openssl/identity.pem 2>/dev/null
openssl pkey -in openssl/identity.pem -pubout -out openssl/recipient.pem
openssl rand -base64 32 >key
openssl enc -aes-256-cbc -pbkdf2 -md sha256 -iter 10000 -pass file:key -in run.tar -out "openssl/$id.tar.enc"
openssl enc -aes-256-cbc -pbkdf2 -md sha256 -iter 10000 -pass file:key -in plain/metadata.json \
  -out "openssl/$id-metadata.json.enc"
openssl pkeyutl -encrypt -pubin -inkey openssl/recipient.pem -pkeyopt rsa_padding_mode:pkcs1 \
  -in key -out "openssl/$id.key.bin.enc"
rm key run.tar
{ echo "made by: sh make.sh"; tar --version | head -1; bzip2 --help 2>&1 | head -1
  echo "age $(age --version)"; openssl version; } >PRODUCER
