package base
