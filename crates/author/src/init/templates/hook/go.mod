module [[ group ]]/[[ name ]]/hook

go 1.24
