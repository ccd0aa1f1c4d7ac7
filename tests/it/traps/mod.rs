mod scale;
