W=/tmp/seam-work/edgewise-bench-sizes
for a in '0.7 0.9' '0 1'; do for t in 1 2; do echo "0.2b $a"; npm exec -- node --disable-warning=ExperimentalWarning native.tmp.ts $W/text-0.2b-14980c255520.gguf 1,4,8,16 $t 8 $a 3; done; done 2>&1 | grep -v npm
for a in '0.7 0.9'; do for m in 0.2b-q4-0bba432c132b 0.5b-991d30fd63e0 0.5b-q4-c1ad6bbd906c; do echo "$m $a"; npm exec -- node --disable-warning=ExperimentalWarning native.tmp.ts $W/text-$m.gguf 1,16 1,2 6 $a 3; done; done 2>&1 | grep -v npm
